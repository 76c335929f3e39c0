"""Shows message bodies as text, JSON and hex. Everything in a body is shown, and nothing of it is executed."""

from __future__ import annotations

import json
from collections.abc import Mapping

import attrs

from twisted_mq.console.forms import visible

MOST_TEXT_BYTES = 64 * 1024
MOST_HEX_BYTES = 4 * 1024
ROW_BYTES = 16

VIEWS: Mapping[str, str] = {"text": "Text", "json": "JSON", "hex": "Hex"}


@attrs.frozen
class BodyView:
    """A view of a body. `cut` is the number of bytes that are not shown; `problem` says why this view is not available."""

    kind: str
    text: str = ""
    cut: int = 0
    problem: str | None = None


def body_view(body: bytes, kind: str) -> BodyView:
    """Return one of VIEWS; for an empty kind, the one that fits best."""
    if kind == "hex" or (not kind and not _is_text(body)):
        return BodyView("hex", hex_rows(body[:MOST_HEX_BYTES]), max(0, len(body) - MOST_HEX_BYTES))
    as_json = _json_view(body) if kind != "text" else None
    if kind == "json" and as_json is not None:
        return as_json
    if not kind and as_json is not None and as_json.problem is None and body.lstrip()[:1] in (b"{", b"["):
        return as_json
    shown = body[:MOST_TEXT_BYTES]
    return BodyView("text", visible(shown.decode("utf-8", "replace")), max(0, len(body) - MOST_TEXT_BYTES))


def _is_text(body: bytes) -> bool:
    """Return True if the bytes are UTF-8; the examined part may end inside a character."""
    try:
        text = body[:MOST_TEXT_BYTES].decode()
    except UnicodeDecodeError as error:
        return len(body) > MOST_TEXT_BYTES and error.start >= MOST_TEXT_BYTES - 3
    return "\x00" not in text


def _json_view(body: bytes) -> BodyView:
    if len(body) > MOST_TEXT_BYTES:
        return BodyView("json", problem=f"The body has {len(body)} bytes; JSON is shown up to {MOST_TEXT_BYTES}.")
    try:
        value = json.loads(body.decode())
        text = json.dumps(value, indent=2, ensure_ascii=False)
    except (ValueError, RecursionError):
        return BodyView("json", problem="The body is not JSON.")
    return BodyView("json", visible(text))


def hex_rows(data: bytes) -> str:
    """Rows of sixteen bytes: offset, hex, and the letters among them.

    00000000  68 65 6c 6c 6f 00                                 hello.
    """
    return "\n".join(_hex_row(offset, data[offset : offset + ROW_BYTES]) for offset in range(0, len(data), ROW_BYTES))


def _hex_row(offset: int, row: bytes) -> str:
    letters = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in row)
    return f"{offset:08x}  {row.hex(' '):<{ROW_BYTES * 3 - 1}}  {letters}"
