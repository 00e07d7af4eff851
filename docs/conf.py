"""The documentation site: the Markdown of this repository, built by Sphinx (`make docs`).

The source folder is the root of the repository, so that a relative link works on the site as it does in a
checkout.
"""

from __future__ import annotations

import builtins
import re
from textwrap import dedent

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.util.nodes import make_refnode
from typer import Context
from typer.cli import get_docs_for_click
from typer.main import get_command

import delta_variant
from delta_variant.cli.app import app as command_line

project = "delta_variant"
author = "the delta_variant contributors"
project_copyright = "2026 The delta_variant authors"
release = version = delta_variant.__version__

root_doc = "docs/index"
include_patterns = [
    "docs/**.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "benchmarks/RESULTS.md",
    "benchmarks/variant/*.md",
    "protocol_fixtures/*.md",
    "tests/README.md",
]
# Folders without pages, some of which are large.
exclude_patterns = [".*", "conformance", "delta_variant", "examples", "rust"]
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_copybutton"]
myst_heading_anchors = 3

autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
maximum_signature_line_length = 72
add_module_names = False
python_use_unqualified_type_names = True
napoleon_numpy_docstring = False
napoleon_use_ivar = True

# Docstrings mark code by single backquotes.
default_role = "code"

html_theme = "furo"
html_title = "delta_variant"
html_static_path = ["site/static"]
html_css_files = ["site.css"]
html_extra_path = ["site/root"]
# Both have a contrast of at least 4.5 for all kinds of tokens.
pygments_style = "default"
pygments_dark_style = "github-dark"
html_copy_source = False
html_show_sphinx = False

MODULES = {"dv": "delta_variant", "dvs": "delta_variant.spark"}
"""The names under which the documentation imports the modules."""

EXAMPLES = re.compile(r"^Examples:\n(?P<lines>(?:  .+\n)+)", re.MULTILINE)
"""The examples at the end of the help of a command."""


def insert_commands(app: Sphinx, docname: str, source: list[str]) -> None:
    """Replace the mark in the reference of the command line with the help of each command."""
    mark = "<!-- commands -->"
    if mark in source[0]:
        command = get_command(command_line)
        text = get_docs_for_click(obj=command, ctx=Context(command), name="delta-variant")
        # The page has its own introduction.
        text = EXAMPLES.sub(_as_block, text[text.index("\n## ") :])
        source[0] = source[0].replace(mark, text)


def _as_block(found: re.Match[str]) -> str:
    return f"**Examples**:\n\n```sh\n{dedent(found['lines'])}```\n"


def qualify_builtins(app: Sphinx, doctree: nodes.document) -> None:
    """Name built-in types by their module: attributes of results, such as `bytes`, have the same names."""
    for reference in doctree.findall(pending_xref):
        if reference.get("refdomain") == "py" and hasattr(builtins, reference["reftarget"]):
            reference["reftarget"] = f"builtins.{reference['reftarget']}"


def link_names(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Link each public name in code font, such as `dv.read_table` or `Snapshot`, to its reference."""
    domain = app.env.domains.python_domain
    for literal in list(doctree.findall(nodes.literal)):
        target = _object_name(literal.astext())
        if target not in domain.objects and target.endswith("Error"):
            target = target.replace("delta_variant.", "delta_variant.errors.", 1)
        entry = domain.objects.get(target)
        if entry is None or isinstance(literal.parent, nodes.reference) or entry.docname == docname:
            continue
        reference = make_refnode(
            app.builder, docname, entry.docname, entry.node_id, literal.deepcopy(), target
        )
        literal.replace_self(reference)


def _object_name(text: str) -> str:
    """Return the full name of an object that the text names. A bare lower-case word names none."""
    name = text.partition("(")[0]
    first, _, rest = name.partition(".")
    if first in MODULES:
        return f"{MODULES[first]}.{rest}"
    if "_" in first or first[:1].isupper():
        return name if first == "delta_variant" else f"delta_variant.{name}"
    return ""


def setup(app: Sphinx) -> None:
    """Register the functions above."""
    app.connect("source-read", insert_commands)
    app.connect("doctree-read", qualify_builtins)
    app.connect("doctree-resolved", link_names)
