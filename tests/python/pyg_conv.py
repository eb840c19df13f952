"""PyG's own tests of its layers, without and with install_pyg().

    python tests/python/pyg_conv.py FOLDER [TEST...]

FOLDER is a checkout of PyG's source, of the version that is installed or near it, because the package has no tests:

    git clone --depth 1 --branch 2.8.0 https://github.com/pyg-team/pytorch_geometric FOLDER

TEST is a file or folder of tests below FOLDER [test/nn/conv]. torch, torch_geometric, pytest and spgraph must be
installed; PYTHONPATH=$(scripts/lay-out-python) takes spgraph from the build. The status is 1 if a test that passes
without install_pyg() does not pass with it, or if no layer ran here. The script is also the plugin of pytest that it
uses.
"""

import collections
import json
import os
import pathlib
import subprocess
import sys
import tempfile

LAYERS = ("gcn", "sage", "gin", "gat")


# ---- the plugin, in a process of its own -------------------------------------------------------------------


class Recorder:
    """Installs the layers, and writes how each test ended and how often each layer ran here."""

    def __init__(self, path, install):
        self.path, self.outcomes, self.calls = path, {}, dict.fromkeys(LAYERS, 0)
        if install:
            import spgraph.torch
            from spgraph.torch import _layers

            for name in LAYERS:
                setattr(_layers, name, self.counted(name, getattr(_layers, name)))
            spgraph.torch.install_pyg()

    def counted(self, name, layer):
        def run(*args, **kwargs):
            self.calls[name] += 1
            return layer(*args, **kwargs)

        return run

    def pytest_runtest_logreport(self, report):
        if report.failed:
            self.outcomes[report.nodeid] = "failed"
        elif report.skipped or report.when == "call":
            self.outcomes.setdefault(report.nodeid, report.outcome)

    def pytest_collectreport(self, report):
        if report.failed:
            self.outcomes[report.nodeid] = "failed"

    def pytest_sessionfinish(self):
        with open(self.path, "w") as file:
            json.dump({"outcomes": self.outcomes, "calls": self.calls}, file)


def pytest_configure(config):
    config.pluginmanager.register(Recorder(os.environ["PYG_CONV_RECORD"], os.environ["PYG_CONV_INSTALL"] == "1"))


# ---- the script --------------------------------------------------------------------------------------------


def run(tests, work, install):
    """How each test ended, and how often layers ran here. pytest works in an empty folder, so that torch_geometric is
    the installed one."""
    record, log = work / f"record{install:d}.json", work / f"log{install:d}"
    here = os.path.dirname(os.path.abspath(__file__))
    environment = {**os.environ, "PYG_CONV_RECORD": str(record), "PYG_CONV_INSTALL": f"{install:d}",
                   "PYTHONPATH": os.pathsep.join(filter(None, [here, os.environ.get("PYTHONPATH")]))}
    with open(log, "w") as file:
        subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "pyg_conv", "-p", "no:cacheprovider", *tests],
                       cwd=work, env=environment, stdout=file, stderr=subprocess.STDOUT)
    if not record.exists():
        sys.exit(f"{log.read_text()}\npyg_conv.py: pytest did not run")
    with open(record) as file:
        return json.load(file), log.read_text()


def counts(outcomes):
    found = collections.Counter(outcomes.values())
    return f"{found['passed']} passed, {found['failed']} failed, {found['skipped']} skipped"


def main():
    if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
        print(__doc__.strip(), file=sys.stderr)
        return 2
    folder = pathlib.Path(sys.argv[1]).resolve()
    tests = [folder / name for name in sys.argv[2:] or ["test/nn/conv"]]
    for test in tests:
        if not test.exists():
            sys.exit(f"pyg_conv.py: there is no {test}: the folder must be a checkout of PyG's source")
    with tempfile.TemporaryDirectory() as work:
        (without, _), (own, log) = (run(map(str, tests), pathlib.Path(work), install) for install in (False, True))
    worse = [name for name, outcome in without["outcomes"].items()
             if outcome == "passed" and own["outcomes"].get(name) != "passed"]
    if worse:
        print(log)
    for name, outcome in sorted(without["outcomes"].items()):
        if outcome == "failed":
            print(f"fails without install_pyg(){'' if own['outcomes'].get(name) == 'failed' else ' only'}: {name}")
    for name in worse:
        print(f"passes without install_pyg() only: {name}")
    print("layers that ran here: " + ", ".join(f"{calls} {name}" for name, calls in own["calls"].items()))
    print("without install_pyg(): " + counts(without["outcomes"]))
    print("with install_pyg(): " + counts(own["outcomes"]))
    return 1 if worse or not any(own["calls"].values()) else 0


if __name__ == "__main__":
    sys.exit(main())
