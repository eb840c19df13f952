#!/usr/bin/env python3
"""Runs the commands that documents show and compares what they print with the output that is shown.

    check_examples.py BIN DOCUMENT...

In blocks fenced by ```sh a line that begins with "$ " is a command; a backslash at its end continues it. The lines
that follow, up to the next command or the end of the block, are its output, standard output and error together; blank
lines at the end do not count. "..." alone on a line stands for any number of lines, within a line for any text.
Blocks without "$ " are not run. The commands of a document run one after another in a scratch folder that has the
repository's data/, with the tools of BIN first on the PATH, and must succeed. Prints each difference as DOCUMENT:LINE,
and fails if there is one.
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

SECONDS = 120  # for one command


def examples(document):
    """(line, command, lines of output) of every command that the document shows."""
    found, inside, shown = [], False, None
    continued = False
    for number, line in enumerate(document.read_text(encoding="utf-8").splitlines(), 1):
        if line.startswith("```"):
            inside, shown, continued = line == "```sh" and not inside, None, False
        elif inside and continued:
            found[-1][1] += "\n" + line
            continued = line.endswith("\\")
        elif inside and line.startswith("$ "):
            shown = []
            found.append([number, line[2:], shown])
            continued = line.endswith("\\")
        elif inside and shown is not None:
            shown.append(line.rstrip())
    for example in found:
        while example[2] and not example[2][-1]:
            example[2].pop()
    return found


def matches(shown, printed):
    """Whether the printed lines are those shown."""
    pattern = ""
    for line in shown:
        pattern += r"(?:.*\n)*?" if line == "..." else ".*?".join(map(re.escape, line.split("..."))) + r"[ \t]*\n"
    return re.fullmatch(pattern, printed.rstrip("\n") + "\n" if printed.strip() else "") is not None


def check(document, environment):
    """Runs one document's commands; the number of differences."""
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        os.symlink(pathlib.Path("data").resolve(), pathlib.Path(folder) / "data")
        for line, command, shown in examples(document):
            try:
                # By lines, so that output and error come in the order in which a terminal shows them.
                run = subprocess.run(["stdbuf", "-oL", "bash", "-c", command], cwd=folder, env=environment,
                                     stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                     timeout=SECONDS, check=False)
                printed, status = run.stdout.decode("utf-8", "replace"), run.returncode
            except subprocess.TimeoutExpired:
                printed, status = f"stopped after {SECONDS} s\n", 124
            if status != 0 or not matches(shown, printed):
                wrong += 1
                print(f"{document}:{line}: {command}\n  ended with status {status} and printed:")
                print("".join(f"    {text}\n" for text in printed.splitlines()[:40]), end="")
    return wrong


def main():
    environment = dict(os.environ, LC_ALL="C.UTF-8",
                       PATH=f"{pathlib.Path(sys.argv[1]).resolve()}{os.pathsep}{os.environ['PATH']}")
    documents = [pathlib.Path(name) for name in sys.argv[2:]]
    return 1 if sum(check(document, environment) for document in documents) else 0


if __name__ == "__main__":
    sys.exit(main())
