"""Sphinx's settings for the site; build.py assembles its pages."""

from click import Context
from sphinx.application import Sphinx

# Sphinx reads these names.
project = "pgsimhash"
html_title = "pgsimhash"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx_click", "sphinx.ext.napoleon"]
html_theme = "furo"
html_extra_path = ["../build/manual/report.html", "../build/manual/llms.txt"]
# Otherwise the two hyphens of an option become a dash.
smartquotes = False
html_copy_source = False
html_show_copyright = False
html_show_sphinx = False
pygments_style = "default"
pygments_dark_style = "github-dark"

# Links to headings use GitHub's anchors, and are checked.
myst_heading_anchors = 4
suppress_warnings = ["misc.highlighting_failure"]

autodoc_mock_imports = ["pyspark"]
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
python_maximum_signature_line_length = 88
autodoc_inherit_docstrings = False
autodoc_default_options = {"show-inheritance": True}  # the methods of a base are shown there only
napoleon_use_ivar = True
napoleon_use_rtype = False


def setup(app: Sphinx) -> None:
    """Show help texts as they are: they are no reStructuredText, and * is a pattern."""

    def escape(_app: Sphinx, _context: Context, lines: list[str]) -> None:
        lines[:] = [line.replace("*", r"\*") for line in lines]

    app.connect("sphinx-click-process-description", escape)
