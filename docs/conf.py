"""Sphinx settings. `make docs` builds the pages into build/docs; what code knows is written to docs/generated first."""

from __future__ import annotations

import re
import sys
from importlib.metadata import version as installed_version
from pathlib import Path

from sphinx.application import Sphinx

DOCS = Path(__file__).parent
sys.path.insert(0, str(DOCS.parent))

project = "RocketMQ in Python"
author = "the project's contributors"
release = version = installed_version("rocketmq-twisted")

extensions = ["myst_parser", "sphinx.ext.autodoc"]
autodoc_default_options = {"members": True, "undoc-members": True, "inherited-members": "Exception,Enum,int,str,object"}
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
autoclass_content = "both"
autodoc_member_order = "bysource"
exclude_patterns = ["generated", "generate"]
html_theme = "furo"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_title = project
html_show_copyright = False
myst_heading_anchors = 3
pygments_style = "friendly"
pygments_dark_style = "native"


def generate(_: Sphinx) -> None:
    from docs.generate import write

    write(DOCS / "generated")


def add_toctrees(_: Sphinx, page: str, source: list[str]) -> None:
    from docs.generate.contents import with_toctrees

    if page == "index":
        source[0] = with_toctrees(source[0])


def double_backticks(_: Sphinx, what: str, name: str, value: object, options: object, lines: list[str]) -> None:
    """Docstrings write `name`, reStructuredText wants ``name``."""
    lines[:] = [line.replace("`", "``") for line in lines]


def without_type_variables(
    _: Sphinx, what: str, name: str, value: object, options: object, arguments: str | None, returned: str | None
) -> tuple[str, str | None] | None:
    """Show a face's own types in arguments that are declared once for all faces."""
    return None if arguments is None else (re.sub(r"\b(MQClient|Listener|Check)T\b", r"\1", arguments), returned)


def setup(app: Sphinx) -> None:
    app.connect("autodoc-process-signature", without_type_variables)
    app.connect("builder-inited", generate)
    app.connect("source-read", add_toctrees)
    app.connect("autodoc-process-docstring", double_backticks)
