"""Renders both recipes and compares them with each other and with the source. Needs jinja2, PyYAML and
py-rattler-build, all from PyPI, where neither bioconda-utils nor conda-build is."""
import os
import re
import sys

import jinja2
import rattler_build
import yaml

here = os.path.dirname(os.path.abspath(__file__))
root = os.path.dirname(os.path.dirname(here))
header = open(f"{root}/libsparse/sparse.h").read()
versions = re.findall(r"^#define SP_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)$", header, re.M)


def conda_build(machine):
    """meta.yaml as conda-build reads it: selectors in comments, then Jinja, then YAML."""
    lines = open(f"{here}/bioconda/meta.yaml").read().splitlines()
    picked = [line for line in lines if not (m := re.search(r"# \[(\w+)\]$", line)) or m.group(1) in machine]
    text = jinja2.Environment(undefined=jinja2.StrictUndefined).from_string("\n".join(picked)).render(
        compiler=lambda name: f"{name}_compiler", stdlib=lambda name: f"{name}_stdlib",
        pin_subpackage=lambda name, **pin: name)
    return yaml.safe_load(text)


def rattler(machine):
    """recipe.yaml as rattler-build renders it for a platform."""
    variants = rattler_build.VariantConfig.from_yaml(
        "c_compiler: [gcc]\nc_compiler_version: ['14']\nc_stdlib: [sysroot]\nc_stdlib_version: ['2.17']\n")
    platform = rattler_build.PlatformConfig(target_platform=machine, build_platform=machine, host_platform=machine)
    recipe = rattler_build.Stage0Recipe.from_file(f"{here}/conda-forge/recipe.yaml")
    config = rattler_build.RenderConfig(platform=platform)
    return [variant.recipe.to_dict() for variant in recipe.render(variants, config)]


def main():
    old = conda_build({"linux", "x86_64"})
    source = yaml.safe_load(open(f"{here}/conda-forge/recipe.yaml"))
    assert old["package"]["version"] == source["context"]["version"] == ".".join(versions), versions
    assert old["requirements"]["host"] == source["requirements"]["host"]
    assert old["build"]["script"] == source["build"]["script"]
    assert old["test"]["commands"][:4] == source["tests"][0]["script"]
    for key in ("summary", "license", "license_file", "description"):
        assert old["about"][key] == source["about"][key], key
    assert source["build"]["skip"] == "not linux"
    assert "skip" not in old["build"] and conda_build({"osx"})["build"]["skip"] is True
    for name in old["test"]["source_files"] + [old["about"]["license_file"]]:
        assert os.path.exists(f"{root}/{name}"), name
    for machine in ("linux-64", "linux-aarch64"):
        rendered = rattler(machine)
        assert len(rendered) == 1, rendered
        print(machine, rendered[0]["requirements"]["build"])
    print("both recipes render and agree")


sys.exit(main())
