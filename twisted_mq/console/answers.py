"""Defines the answers of pages, before they are HTTP."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

import attrs

from twisted_mq.protocol.text.json_value import Json


@attrs.frozen
class Page:
    """A template and its values."""

    template: str
    values: Mapping[str, object] = attrs.field(factory=dict)
    status: int = 200


@attrs.frozen
class Redirect:
    """Redirects to another page of the console; a path with its query."""

    path: str


@attrs.frozen
class JsonValue:
    """A value for scripts of the console's own pages."""

    value: Json


@attrs.frozen
class Download:
    """Bytes that a browser saves and never shows."""

    file_name: str
    content_type: str
    body: bytes


Answer: TypeAlias = Page | Redirect | JsonValue | Download


class BadInput(Exception):
    """Raised when a form or an address makes no sense; the text says what to give instead."""


class NotThere(Exception):
    """Raised when an address names something that does not exist; the text says where to look."""
