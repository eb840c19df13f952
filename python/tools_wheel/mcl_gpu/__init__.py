"""The programs of the wheel mcl-gpu. From Python, use the package spgraph."""

import os
import sys


def run():
    """Becomes the program that the script is called after."""
    name = os.path.basename(sys.argv[0])
    program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", name)
    try:
        os.execv(program, sys.argv)
    except OSError as failure:
        sys.exit(f"{name}: {program} cannot be run ({failure.strerror}); install the wheel mcl-gpu again")
