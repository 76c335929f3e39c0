"""Prints tables of subcommands: rows under columns, the same values as text or, with --json, as one object per line."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from twisted_mq.cli.admin.java_format import text_or_null
from twisted_mq.protocol.text.json_value import Json


@attrs.frozen
class TextTable:
    """The line that names the columns, the form of a row (str.format), and the names of the columns in JSON."""

    head: str
    row: str
    keys: tuple[str, ...]

    @classmethod
    def of(cls, row: str, **columns: str) -> TextTable:
        """Return a table whose head has the form of its rows: name in JSON -> name in the head."""
        return cls(row.format(*columns.values()), row, tuple(columns))

    def line(self, values: Sequence[Json]) -> str:
        """Return a row as text; `{:<20.20}` in the form cuts longer values."""
        return self.row.format(*(value if isinstance(value, float) else text_or_null(value) for value in values))

    def value(self, values: Sequence[Json]) -> dict[str, Json]:
        """Return a row for JSON."""
        return dict(zip(self.keys, values, strict=True))
