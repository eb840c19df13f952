"""What the sweeps share: cases from a seed, runs of a tool, and the count of outcomes.

A sweep draws random cases, runs a tool on each and compares what it wrote with a reference that was computed
independently. It looks for one fault: exit status 0 with a result that is wrong. A refusal in one line is no fault;
refusals are counted by message, so that a reader sees how much was compared.
"""

import argparse
import collections
import gzip
import os
import random
import re
import shlex
import subprocess
import sys
import tempfile
import time

TIMEOUT = 60    # seconds for one run of a tool


class Wrong(Exception):
    """The tool reported success, or failed in a way that it must not, and this is the difference."""


class Refused(Exception):
    """The tool refused the case in one line."""


class Skipped(Exception):
    """The case says nothing, for the reason given."""


class Run:
    """A finished run: its command line, exit status, output and messages."""

    def __init__(self, argv, status, out, err):
        self.argv, self.status, self.out, self.err = argv, status, out, err

    def line(self):
        return shlex.join([os.path.basename(self.argv[0])] + list(self.argv[1:]))


class Case:
    """One random case: its generator, its folder, and every command that it ran."""

    def __init__(self, folder, seed, number, bin_folder):
        self.rng = random.Random(f"{seed}:{number}")
        self.folder, self.bin = folder, bin_folder
        self.commands = []
        self.files = {}

    def write(self, name, text, packing=""):
        """Writes an input, compressed as its ending `packing` says, and returns its name."""
        data = text.encode() if isinstance(text, str) else text
        name += packing
        path = os.path.join(self.folder, name)
        self.files[name] = data
        if packing == ".gz":
            half = len(data) // 2 if self.rng.random() < 0.3 else 0    # two members are one file
            data = (gzip.compress(data[:half]) if half else b"") + gzip.compress(data[half:])
        elif packing == ".zst":
            data = subprocess.run(["zstd", "-q", "-c"], input=data, stdout=subprocess.PIPE, check=True).stdout
        with open(path, "wb") as file:
            file.write(data)
        return name

    def read(self, name):
        with open(os.path.join(self.folder, name), "rb") as file:
            return file.read()

    def text(self, name):
        return self.read(name).decode()

    def exists(self, name):
        return os.path.exists(os.path.join(self.folder, name))

    def run(self, tool, *args, stdin=None, inside=""):
        """Runs a tool of the folder of binaries, or any other that is on the path, in the case's folder or `inside`."""
        own = os.path.join(self.bin, tool)
        argv = [own if os.path.exists(own) else tool, *args]
        shown = Run(argv, None, "", "").line() + (" < input" if stdin is not None else "")
        self.commands.append(shown)
        try:
            done = subprocess.run(argv, cwd=os.path.join(self.folder, inside), input=stdin or b"", timeout=TIMEOUT,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
        except subprocess.TimeoutExpired:
            raise Wrong(f"no end after {TIMEOUT} s")
        return Run(argv, done.returncode, done.stdout, done.stderr.decode(errors="replace"))

    def accepted(self, run, tool):
        """Raises unless the run succeeded: Refused for one proper line, Wrong for anything else."""
        if run.status == 0:
            return run
        lines = [line for line in run.err.splitlines() if line.startswith(tool + ":")]
        if run.status not in (1, 2) or not lines:
            raise Wrong(f"exit status {run.status}, messages: {run.err[-500:]!r}")
        if run.out:
            raise Wrong(f"exit status {run.status}, yet it wrote {run.out[:200]!r}")
        raise Refused(lines[-1])


def must_refuse(run, word, why):
    """Raises Wrong unless the run failed with a message that holds `word`, which may be empty."""
    if run.status == 0:
        raise Wrong(f"accepted: {why}")
    if word not in run.err:
        raise Wrong(f"refused, but the message lacks {word!r}: {run.err.strip()!r}")


def general(message):
    """A message without what differs from case to case, to count refusals of one kind."""
    message = re.sub(r"^([\w-]+: )(?:\(standard input\)|\S+?)(:\d+)?: ", r"\1FILE: ", message)
    message = re.sub(r'"[^"]*"', '"..."', message)
    return re.sub(r"-?\d[\d,.]*(e[-+]?\d+)?", "N", message)


def outcome(make_case, case):
    try:
        make_case(case)
        return "passed", ""
    except Wrong as fault:
        return "failed", str(fault)
    except Refused as refusal:
        return "refused", str(refusal)
    except Skipped as reason:
        return "skipped", str(reason)


def show_failure(case, number, text):
    print(f"case {number} failed")
    for command in case.commands[-4:]:
        print(f"    {command}")
    for line in text.splitlines()[:12]:
        print(f"    {line[:300]}")


def arguments(description):
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("bin", help="the folder of the tools")
    parser.add_argument("--cases", type=int, default=2000, help="how many cases [2000]")
    parser.add_argument("--seed", type=int, help="of the random cases [drawn anew]")
    parser.add_argument("--only", type=int, help="run this case alone and keep its folder")
    return parser.parse_args()


def sweep(description, make_case):
    """Runs the cases and ends with the line of counts; returns the exit status."""
    given = arguments(description)
    seed = given.seed if given.seed is not None else random.SystemRandom().randrange(10**9)
    numbers = range(given.cases) if given.only is None else [given.only]
    bin_folder = os.path.abspath(given.bin)
    print(f"seed {seed}, {len(numbers)} cases")
    counts, kinds, start = collections.Counter(), collections.Counter(), time.time()
    for number in numbers:
        folder = tempfile.TemporaryDirectory(prefix="sweep-")
        case = Case(folder.name, seed, number, bin_folder)
        result, text = outcome(make_case, case)
        counts[result] += 1
        if result == "failed":
            show_failure(case, number, text)
        elif result != "passed":
            kinds[f"{result}: {general(text)}"] += 1
        if given.only is not None:
            kept = tempfile.mkdtemp(prefix="sweep-kept-")
            subprocess.run(["cp", "-a", folder.name + "/.", kept], check=True)
            print("\n".join(case.commands + [f"{result} {text}", f"files in {kept}"]))
        folder.cleanup()
    for kind, count in kinds.most_common():
        print(f"{count:6} {kind[:200]}")
    compared = counts["passed"] + counts["failed"]
    print(f"{compared} of {len(numbers)} compared, {counts['refused']} refused, {time.time() - start:.0f} s")
    print(f"{counts['passed']} passed, {counts['failed']} failed, {counts['refused'] + counts['skipped']} skipped")
    return 1 if counts["failed"] else 0


if __name__ == "__main__":
    sys.exit("common.py is no sweep of its own")
