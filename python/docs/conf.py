"""How Sphinx builds these pages: python -m sphinx python/docs DIRECTORY."""

import os
import re
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(HERE / "extension"))
os.environ.setdefault("BASCULE_DEVICE", "emulated")  # a machine that builds pages need not have a GPU

project = "Bascule"
copyright = "the authors of Bascule, Apache License 2.0"
release = version = re.search(r"project\(bascule VERSION ([\d.]+)", (ROOT / "CMakeLists.txt").read_text())[1]

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "python_reference",
    "header_reference",
    "cuda_strings",
]
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3
exclude_patterns = ["extension"]
default_role = "code"

autodoc_member_order = "bysource"
autodoc_typehints = "none"
napoleon_use_param = False
napoleon_use_rtype = False

html_theme = "furo"
html_title = "Bascule"
html_static_path = ["_static"]
html_copy_source = False
html_show_sourcelink = False
html_css_files = ["custom.css"]

# The reference omits the subclasses of ArgumentError: users catch it, or the built-in exception of the subclass.
nitpick_ignore_regex = [("py:exc", r"Argument\w+Error")]
