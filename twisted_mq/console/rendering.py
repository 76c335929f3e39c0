"""Renders templates. Everything is escaped, and invisible characters in values are made visible."""

from __future__ import annotations

import os
from collections.abc import Mapping

import jinja2
from markupsafe import Markup

from twisted_mq.console import forms

FOLDER = os.path.dirname(__file__)


def environment() -> jinja2.Environment:
    """Return an environment with the filters of `forms`."""
    made = jinja2.Environment(
        loader=jinja2.FileSystemLoader(os.path.join(FOLDER, "templates")),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
        finalize=_shown,
    )
    for form in (forms.count, forms.size, forms.when, forms.machine_time, forms.span, forms.percent):
        made.filters[form.__name__] = form
    made.globals.update(link=forms.link, UNKNOWN=forms.UNKNOWN)
    return made


def _shown(value: object) -> object:
    """Return a value as a page shows it: None as unknown, text without hidden characters."""
    if value is None:
        return forms.UNKNOWN
    if isinstance(value, Markup) or not isinstance(value, str):
        return value
    return forms.visible(value)


class Rendering:
    """Renders the pages of the console."""

    def __init__(self) -> None:
        self._environment = environment()

    def page(self, template: str, values: Mapping[str, object]) -> bytes:
        """Return a page as HTML in UTF-8."""
        return self._environment.get_template(template).render(values).encode("utf-8", "replace")


STATIC = {
    "console.css": b"text/css; charset=utf-8",
    "console.js": b"text/javascript; charset=utf-8",
    "charts.js": b"text/javascript; charset=utf-8",
    "icon.svg": b"image/svg+xml",
}
"""The files that pages need: their names and types."""


def static_files() -> dict[str, bytes]:
    """Return name -> bytes, read once."""
    found = {}
    for name in STATIC:
        with open(os.path.join(FOLDER, "static", name), "rb") as file:
            found[name] = file.read()
    return found
