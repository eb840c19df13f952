"""The programs of the wheel mcl-gpu, as pip installs them."""

import os
import subprocess
import sys

import pytest

TOOLS = ["mcl-gpu", "contract", "gnn", "sparse-bench"]


@pytest.fixture
def installed():
    """The path of a program of the wheel."""
    pytest.importorskip("mcl_gpu", reason="the wheel mcl-gpu is not installed")
    return lambda name: os.path.join(os.path.dirname(sys.executable), name)


def run(*command):
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


@pytest.mark.parametrize("name", TOOLS)
def test_each_program_has_its_help_and_man_page(installed, name):
    ran = run(installed(name), "--help")
    assert ran.returncode == 0 and name in ran.stdout
    page = os.path.join(sys.prefix, "share", "man", "man1", name + ".1")
    assert name in open(page).read()


def test_clusters_are_those_of_the_build(installed, mcl_gpu, data, tmp_path):
    made = []
    for program in (installed("mcl-gpu"), mcl_gpu):
        target = tmp_path / f"clusters{len(made)}"
        assert run(program, data("Hu-2007.txt.gz"), "--abc", "-o", str(target)).returncode == 0
        made.append(target.read_bytes())
    assert made[0] == made[1] and made[0]


def test_failures_keep_their_status_and_message(installed):
    ran = run(installed("mcl-gpu"), "no such file", "--abc")
    assert ran.returncode == 1 and ran.stderr.startswith("mcl-gpu: ") and "no such file" in ran.stderr
    assert run(installed("contract"), "--no-such-option").returncode == 2


def test_a_missing_program_is_named(installed, tmp_path):
    link = tmp_path / "nothing"
    link.write_text(f"#!{sys.executable}\nfrom mcl_gpu import run\nrun()\n")
    link.chmod(0o755)
    ran = run(str(link))
    assert ran.returncode == 1 and "nothing: " in ran.stderr and "install the wheel" in ran.stderr
