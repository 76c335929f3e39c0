"""Reads Java properties files, with the line at which each entry begins.

They are read as Apache's start-up code does: ISO-8859-1 with backslash-u escapes; later entries override earlier ones.
XML comments are skipped, because some of Apache's files carry their licence in one.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import attrs

from twisted_mq.config.errors import ConfigError
from twisted_mq.extras import require
from twisted_mq.storage.files.replace_file import replace_file

if TYPE_CHECKING:
    from javaproperties import PropertiesElement

MAX_FILE_BYTES = 4 * 1024 * 1024
"""The largest file: a configuration file is a few kilobytes; a larger one is some other file."""

MOST_REQUEST_BYTES = 64 * 1024
MOST_REQUEST_LINES = 1000
"""The most settings in one request: parsing a line takes about 10 us. A server has fewer than 500 settings."""


@attrs.frozen
class Entry:
    """A setting: key, value as text, and the number of its first line; None on the command line."""

    key: str
    value: str
    line: int | None = None


def read_properties(path: str) -> list[Entry]:
    """Return the entries of a file in order. Raises ConfigError if it cannot be read."""
    return parse_properties(_read(path), path)


def parse_properties(data: bytes, path: str | None = None) -> list[Entry]:
    """Return the entries in a file's bytes. Raises ConfigError with the line, MissingExtra."""
    require("a properties file", "broker", "javaproperties")
    import javaproperties

    entries = []
    for line, element in _with_lines(data, path):
        if isinstance(element, javaproperties.KeyValue):
            entries.append(Entry(element.key, element.value, line))
    return entries


def parse_request(data: bytes) -> list[Entry]:
    """Return the entries of a request's body. Raises ConfigError, also if it is longer than a server parses in one turn."""
    lines = data.count(b"\n") + data.count(b"\r")
    if len(data) > MOST_REQUEST_BYTES or lines > MOST_REQUEST_LINES:
        raise ConfigError(
            f"{len(data)} bytes in {lines} lines: the limit is {MOST_REQUEST_BYTES} bytes in {MOST_REQUEST_LINES} lines"
        )
    return parse_properties(data)


def property_table(data: bytes) -> dict[str, str]:
    """Return the settings in a broker's answer, as Java writes them. Raises MissingExtra."""
    require("settings of a server", "cli", "javaproperties")
    import javaproperties

    return javaproperties.loads(data.decode("utf-8", "replace"))


def update_properties(path: str, changes: Mapping[str, str]) -> None:
    """Set these keys in a file and keep its other lines; create a missing file.

    The new content replaces the old one in one step; mode and owner stay. Raises OSError, or ConfigError if the old
    file cannot be read.
    """
    content = _changed(_read(path) if os.path.exists(path) else b"", path, dict(changes))
    replace_file(path, content.encode("latin-1"))


def _changed(data: bytes, path: str, changes: dict[str, str]) -> str:
    import javaproperties

    lines: list[str] = []
    written: set[str] = set()
    for _, element in _with_lines(data, path):
        key = element.key if isinstance(element, javaproperties.KeyValue) else None
        if key not in changes:
            lines.append(element.source)
        elif key not in written:
            written.add(key)
            lines.append(javaproperties.join_key_value(key, changes[key]) + "\n")
    if lines and not lines[-1].endswith(("\n", "\r")):
        lines[-1] += "\n"
    lines += [javaproperties.join_key_value(key, value) + "\n" for key, value in changes.items() if key not in written]
    return "".join(lines)


def _read(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            data = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise ConfigError(f"cannot be read: {error.strerror}", path=path) from error
    if len(data) > MAX_FILE_BYTES:
        raise ConfigError(f"is larger than {MAX_FILE_BYTES} bytes, so it is not a configuration file", path=path)
    return data


def _with_lines(data: bytes, path: str | None) -> Iterator[tuple[int, PropertiesElement]]:
    """Yield every element (entry, comment, blank) with its first line; an XML comment becomes comments."""
    import javaproperties

    line, in_xml_comment = 1, False
    elements = javaproperties.parse(data)
    while True:
        try:
            element = next(elements)
        except StopIteration:
            return
        except javaproperties.InvalidUEscapeError as error:
            raise ConfigError(f"{error}", path=path, line=line) from error
        first, source = line, element.source
        line += source.count("\n") or source.count("\r") or 1
        in_xml_comment = in_xml_comment or source.lstrip().startswith("<!--")
        yield first, javaproperties.Comment(source) if in_xml_comment else element
        in_xml_comment = in_xml_comment and "-->" not in source
