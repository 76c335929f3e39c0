"""Joins the metrics pages of several brokers into one, on which each sample has the broker's name."""

from __future__ import annotations

from collections.abc import Iterable

import attrs

_HEADERS = (b"# HELP ", b"# TYPE ")


@attrs.frozen
class _Family:
    """A metric's header lines by kind, and its samples of all pages."""

    headers: dict[bytes, bytes] = attrs.Factory(dict)
    samples: list[bytes] = attrs.Factory(list)


def joined(pages: Iterable[tuple[str, bytes]]) -> bytes:
    """Return one page of (broker's name, page) in Prometheus' text format 0.0.4.

    A sample without the label `broker` gets it; with an empty name it stays as it is. A family's samples stand together.
    """
    families: dict[bytes, _Family] = {}
    for name, page in pages:
        label = _label(name)
        family = _Family()
        for line in page.split(b"\n"):
            if line.startswith(_HEADERS):
                family = families.setdefault(line.split(b" ", 3)[2], _Family())
                family.headers.setdefault(line[:7], line)
            elif line:
                family.samples.append(_with_label(line, label) if name else line)
    lines = [line for family in families.values() for line in (*family.headers.values(), *family.samples)]
    return b"".join(line + b"\n" for line in lines)


def _label(name: str) -> bytes:
    escaped = name.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return b'broker="%s"' % escaped.encode()


def _with_label(line: bytes, label: bytes) -> bytes:
    """Return a sample's line with the label first, unless it has one of that name. Values escape their quotes."""
    end = line.find(b" ")
    brace = line.find(b"{", 0, end)
    if brace < 0:
        return line[:end] + b"{" + label + b"}" + line[end:]
    if b'{broker="' in line or b',broker="' in line:
        return line
    comma = b"" if line[brace + 1 : brace + 2] == b"}" else b","
    return line[: brace + 1] + label + comma + line[brace + 1 :]
