"""Sphinx's settings for the site of the Python package: guides as they stand in docs, the reference from docstrings,
which sphinx-autoapi reads without importing anything."""

import os
import re

ROOT = os.environ["SPGRAPH_ROOT"]  # of the repository; scripts/docs-python copies this file away

with open(os.path.join(ROOT, "libsparse", "sparse.h")) as header:
    numbers = re.findall(r"#define SP_VERSION_[A-Z]* (\d+)", header.read())

project, release = "spgraph", ".".join(numbers)
extensions = ["autoapi.extension", "myst_parser", "sphinx.ext.napoleon"]
suppress_warnings = ["autoapi.python_import_resolution"]  # of private names that modules share
html_theme = "alabaster"
html_theme_options = {"description": "Sparse products, Markov clustering and quotient graphs", "page_width": "1100px",
                      "globaltoc_maxdepth": 3}
html_sidebars = {"**": ["about.html", "searchbox.html", "navigation.html"]}
html_show_sourcelink, html_show_copyright = False, False
default_role = "code"
myst_heading_anchors = 3
napoleon_google_docstring, napoleon_use_rtype = False, False

autoapi_dirs = [os.path.join(ROOT, "python", "spgraph")]
autoapi_root, autoapi_add_toctree_entry = "reference", False
autoapi_options = ["members", "inherited-members", "imported-members", "show-module-summary"]
autoapi_member_order = "groupwise"
autoapi_python_class_content = "both"
autoapi_keep_files = False


def leave_out(app, what, name, obj, skip, options):
    """Leaves out what is not public: modules that begin with _, and names that __all__ does not have."""
    return skip or any(part.startswith("_") for part in name.split("."))


def setup(app):
    app.connect("autoapi-skip-member", leave_out)
