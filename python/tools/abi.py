"""Makes two files from the headers of the C library: python/spgraph/_abi.py, for ctypes the prototypes of the functions
that the package calls and the structs that these need, and python/native/sizes.c, by which the library says how large
these structs are.

    abi.py            writes the files
    abi.py --check    compares them with the headers, and every size and offset with what the C compiler says

Needs gcc (or CC) and pycparser. To be run after a change of the headers; `make test-python` runs the check.
"""

import ctypes
import glob
import hashlib
import importlib.util
import os
import re
import subprocess
import sys
import tempfile
import textwrap

from pycparser import c_ast, c_parser

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TARGET = os.path.join(ROOT, "python", "spgraph", "_abi.py")
SIZES = os.path.join(ROOT, "python", "native", "sizes.c")
HEADERS = ["sparse.h", "sp_ranks.h", "mcl.h", "contraction.h", "gnn.h", "io.h"]
FOLDERS = [os.path.join(ROOT, name) for name in ("libsparse", "mcl", "contraction", "gnn", "io")]
SYSTEM = ["stdbool.h", "stddef.h", "stdint.h"]
SCALARS = {
    "bool": "c_bool", "_Bool": "c_bool", "char": "c_char", "int": "c_int", "unsigned": "c_uint",
    "unsigned int": "c_uint", "float": "c_float", "double": "c_double", "int32_t": "c_int32", "int64_t": "c_int64",
    "uint8_t": "c_uint8", "uint16_t": "c_uint16", "uint32_t": "c_uint32", "uint64_t": "c_uint64",
    "size_t": "c_size_t", "void": "None",
}
NOT_NEEDED = "IO_([IUF][0-9]|LABELS|LISTED|MOST|BOOL|TEXT|DIMENSIONS)|SP_SPMM|SP_AIA|MCL_SORT|CONTRACTION|GNN_(?!SAMPLE|MAX_LAYERS)"


def called():
    """What the modules of the package name."""
    paths = sorted(set(glob.glob(os.path.join(os.path.dirname(TARGET), "**", "*.py"), recursive=True)) - {TARGET})
    return set(re.findall(r"\b(?:sp|mcl|contraction|gnn|io)_\w+", "".join(open(path).read() for path in paths)))


def compiler():
    return os.environ.get("CC", "gcc").split()


def preprocessed():
    """The headers in one piece, without the system's, whose types are declared here."""
    with tempfile.TemporaryDirectory() as empty:
        for name in SYSTEM:
            open(os.path.join(empty, name), "w").close()
        text = "".join(f'#include "{name}"\n' for name in HEADERS)
        made = subprocess.run(
            [*compiler(), "-E", "-P", "-D__attribute__(x)=", "-I", empty, *(f"-I{f}" for f in FOLDERS), "-x", "c", "-"],
            input=text, capture_output=True, text=True, check=True).stdout
    types = "".join(f"typedef int {name};\n" for name in SCALARS if name.endswith("_t") or name == "bool")
    return types + "\n".join(line for line in made.splitlines() if not line.startswith("#"))


def defined(name):
    """The number of a #define."""
    for folder, header in zip(FOLDERS, HEADERS):
        for line in open(os.path.join(folder, header)):
            words = line.split()
            if words[:2] == ["#define", name]:
                return int(words[2])
    raise KeyError(name)


class Reader:
    """What the declarations of the headers say."""

    def __init__(self, text):
        self.constants, self.enums, self.structs, self.callbacks, self.functions = {}, set(), {}, {}, {}
        self.enumerators = []
        for node in c_parser.CParser().parse(text).ext:
            if isinstance(node, c_ast.Typedef):
                self.typedef(node)
            elif isinstance(node, c_ast.Decl) and isinstance(node.type, c_ast.Enum):
                self.enum(node.type)
            elif isinstance(node, c_ast.Decl) and isinstance(node.type, c_ast.FuncDecl):
                parameters = node.type.args.params if node.type.args else []
                if not any(isinstance(p, c_ast.EllipsisParam) for p in parameters):
                    self.functions[node.name] = self.signature(node.type)
        everything = repr((self.constants, self.structs, self.callbacks, self.functions))
        self.digest = hashlib.sha256(everything.encode()).hexdigest()[:16]
        self.drop_unused()

    def drop_unused(self):
        """Leaves out what the package does not call, and the structs and callbacks that no other function needs."""
        names = called()
        self.functions = {name: what for name, what in self.functions.items() if name in names}
        used = " ".join(" ".join([result, *parameters]) for result, parameters in self.functions.values())
        self.callbacks = {name: what for name, what in self.callbacks.items() if name in used}
        used += " ".join(self.callbacks.values())
        for name in reversed(self.structs):
            if name in used:
                used += " " + " ".join(what for _, what in self.structs[name])
        self.structs = {name: fields for name, fields in self.structs.items() if name in used}

    def typedef(self, node):
        inner = getattr(node.type, "type", None)
        if isinstance(inner, c_ast.Enum):
            self.enums.add(node.name)
            self.enum(inner)
        elif isinstance(inner, c_ast.Struct) and inner.decls:
            self.structs[node.name] = [(d.name, self.type(d.type)) for d in inner.decls]
        elif isinstance(node.type, c_ast.PtrDecl) and isinstance(inner, c_ast.FuncDecl):
            self.callbacks[node.name] = self.callback(inner)

    def enum(self, node):
        value = -1
        self.enumerators.append([e.name for e in node.values.enumerators])
        for e in node.values.enumerators:
            value = self.number(e.value) if e.value is not None else value + 1
            self.constants[e.name] = value

    def number(self, node):
        if isinstance(node, c_ast.Constant):
            return int(node.value, 0)
        if isinstance(node, c_ast.ID):
            return self.constants[node.name]
        if isinstance(node, c_ast.BinaryOp) and node.op == "<<":
            return self.number(node.left) << self.number(node.right)
        if isinstance(node, c_ast.UnaryOp) and node.op == "-":
            return -self.number(node.expr)
        raise TypeError(f"an expression that is not expected here: {node}")

    def signature(self, node):
        parameters = [self.type(p.type) for p in node.args.params] if node.args else []
        return self.type(node.type), [] if parameters == ["None"] else parameters

    def callback(self, node):
        result, parameters = self.signature(node)
        return f"CFUNCTYPE({', '.join([result, *parameters])})"

    def type(self, node):
        if isinstance(node, c_ast.TypeDecl):
            inner = node.type
            if isinstance(inner, c_ast.IdentifierType):
                name = " ".join(inner.names)
                return "c_int" if name in self.enums else SCALARS.get(name, name)
            return "c_int" if isinstance(inner, c_ast.Enum) else inner.name
        if isinstance(node, c_ast.ArrayDecl):
            return f"{self.type(node.type)} * {self.number(node.dim)}" if node.dim is not None else "c_void_p"
        assert isinstance(node, c_ast.PtrDecl), node
        if isinstance(node.type, c_ast.FuncDecl):
            return self.callback(node.type)
        inner = self.type(node.type)
        if inner == "c_char" and "const" in node.type.quals:
            return "c_char_p"
        return f"POINTER({inner})" if inner in self.structs else "c_void_p"


def constant_lines(constants):
    """A line an enum, or as many as it takes: A, B = 0, 1."""
    text = [f"{', '.join(constants)} = {', '.join(str(value) for value in constants.values())}"]
    if len(text[0]) <= 120:
        return text if constants else []
    names = list(constants)
    parts = names[:len(names) // 2], names[len(names) // 2:]
    return [line for part in parts for line in constant_lines({name: constants[name] for name in part})]


def made_sizes(r):
    """The text of sizes.c."""
    lines = ["/* The sizes of the structs of _abi.py in the order there, for the check when the package is loaded. Made by",
             " * python/tools/abi.py from the headers: do not edit. */", *(f'#include "{name}"' for name in HEADERS),
             "",
             "#pragma GCC visibility push(default)", "const int32_t *spgraph_struct_sizes(void);",
             "#pragma GCC visibility pop", "", "const int32_t *spgraph_struct_sizes(void)", "{",
             "    static const int32_t sizes[] = {"]
    lines += textwrap.wrap(" ".join(f"sizeof({name})," for name in r.structs), 118, initial_indent=" " * 8,
                           subsequent_indent=" " * 8)
    return "\n".join(lines + ["        0,", "    };", "    return sizes;", "}"]) + "\n"


def version():
    return ".".join(str(defined(f"SP_VERSION_{part}")) for part in ("MAJOR", "MINOR", "PATCH"))


def made(r):
    """The text of _abi.py."""
    lines = ['"""The C library\'s structs and functions. Made by python/tools/abi.py from its headers: do not edit."""',
             "",
             "from ctypes import (CFUNCTYPE, POINTER, Structure, c_bool, c_char, c_char_p, c_double, c_float, c_int, "
             "c_int32,", "                    c_int64, c_size_t, c_uint32, c_uint64, c_void_p)", "",
             f'SP_VERSION = "{version()}"',
             f"SP_ABI = {defined('SP_ABI')}  # a digest of all declarations of the headers: {r.digest}"]
    for names in r.enumerators:
        lines += constant_lines({name: r.constants[name] for name in names if not re.match(NOT_NEEDED, name)})
    for name, fields in r.structs.items():
        lines += ["", "", f"class {name}(Structure):", "    _fields_ = ["]
        pairs = [f'("{field}", {what}),'.replace(" ", "\0") for field, what in fields] # no line ends within one
        lines += [line.replace("\0", " ") for line in textwrap.wrap(" ".join(pairs), 118, initial_indent=" " * 8,
                                                                    subsequent_indent=" " * 8)] + ["    ]"]
    lines += ["", ""] + [f"{name} = {value}" for name, value in r.callbacks.items()]
    lines += ["", "", "STRUCTS = ("] + textwrap.wrap(", ".join(r.structs) + ",", 116, initial_indent=" " * 4,
                                                     subsequent_indent=" " * 4) + [")"]
    lines += ["", "", "FUNCTIONS = {"]
    lines += [f'    "{name}": ({result}, [{", ".join(parameters)}]),' for name, (result, parameters) in
              r.functions.items()]
    return "\n".join(lines) + "\n}\n"


def layouts(module):
    """Structs by name, each with its size and the offsets of its fields, as ctypes and as C see them."""
    structs = {n: s for n, s in vars(module).items() if isinstance(s, type) and issubclass(s, ctypes.Structure)
               and s is not ctypes.Structure}
    ours = {n: [ctypes.sizeof(s)] + [getattr(s, f[0]).offset for f in s._fields_] for n, s in structs.items()}
    c = "#include <stdio.h>\n" + "".join(f'#include "{name}"\n' for name in HEADERS) + "int main(void)\n{\n"
    for name, struct in structs.items():
        c += f'    printf("{name} %zu", sizeof({name}));\n'
        c += "".join(f'    printf(" %zu", offsetof({name}, {f[0]}));\n' for f in struct._fields_) + '    puts("");\n'
    with tempfile.TemporaryDirectory() as folder:
        program = os.path.join(folder, "layouts")
        subprocess.run([*compiler(), *(f"-I{f}" for f in FOLDERS), "-x", "c", "-", "-o", program], input=c + "}\n",
                       text=True, check=True)
        said = subprocess.run([program], capture_output=True, text=True, check=True).stdout
    return ours, {line.split()[0]: [int(word) for word in line.split()[1:]] for line in said.splitlines()}


def check():
    wrong = []
    r = Reader(preprocessed())
    for path, text in ((TARGET, made(r)), (SIZES, made_sizes(r))):
        if open(path).read() != text:
            wrong.append(f"{os.path.relpath(path, ROOT)} is not what the headers say: run python/tools/abi.py, and if "
                         "a struct, an enum or a prototype has changed, raise SP_ABI in libsparse/sparse.h")
    spec = importlib.util.spec_from_file_location("abi_of_spgraph", TARGET)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    ours, theirs = layouts(module)
    wrong += [f"{name}: ctypes {ours[name]}, C {theirs.get(name)}" for name in ours if ours[name] != theirs.get(name)]
    for line in wrong:
        print(line)
    print(f"{len(ours)} structs, {len(module.FUNCTIONS)} functions, {len(wrong)} differences")
    return 1 if wrong else 0


if __name__ == "__main__":
    if sys.argv[1:] == ["--check"]:
        sys.exit(check())
    reader = Reader(preprocessed())
    for target, content in ((TARGET, made(reader)), (SIZES, made_sizes(reader))):
        with open(target, "w") as file:
            file.write(content)
