"""The wheels themselves: for which systems, how large, what lies in them."""

import glob
import os
import platform
import re
import zipfile

import pytest

BUILD = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))),
                     os.environ.get("BUILD", "build"))


@pytest.fixture(params=["spgraph", "mcl_gpu"])
def wheel(request):
    """The path of a wheel that `make wheel` made."""
    found = glob.glob(os.path.join(BUILD, "dist", request.param + "-*.whl"))
    if not found:
        pytest.skip(f"no wheel {request.param} in {BUILD}/dist")
    assert len(found) == 1
    return found[0]


def test_wheels_are_for_every_python_3_and_for_glibc_2_34(wheel):
    own = tuple(map(int, platform.libc_ver()[1].split(".")[:2]))
    if platform.libc_ver()[0] != "glibc" or own > (2, 36):
        pytest.skip("the headers of this system name symbols of a newer glibc")
    _, _, python, abi, systems = os.path.basename(wheel)[:-4].split("-")
    assert (python, abi) == ("py3", "none")
    versions = re.findall(r"manylinux_(\d+)_(\d+)_", systems)
    assert versions and max((int(major), int(minor)) for major, minor in versions) <= (2, 34), wheel


def test_wheels_are_as_small_as_pypi_asks(wheel):
    assert os.path.getsize(wheel) < 100e6


def test_wheels_hold_the_licence_and_the_libraries_they_need(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    assert any(name.endswith("LICENSE") for name in names)
    assert any("libgomp" in name for name in names)
    assert not any("__pycache__" in name for name in names)
