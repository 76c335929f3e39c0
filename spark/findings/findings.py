"""Results of a job, independent of their display: numbers, the first rows of tables, bars of charts."""

from __future__ import annotations

import enum
import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import attrs
from pyspark.sql import Column, DataFrame

from twisted_mq.spark.report.report_words import NOTHING, bytes_text, count_text, duration_text, time_text


class Kind(enum.Enum):
    """Kind of a value: TIME in ms since 1970, SPAN in ms; PLAIN are identifying numbers such as offsets."""

    TEXT = enum.auto()
    PLAIN = enum.auto()
    COUNT = enum.auto()
    BYTES = enum.auto()
    SPAN = enum.auto()
    TIME = enum.auto()


_WORDS: Mapping[Kind, Callable[[Any], str]] = {
    Kind.COUNT: count_text,
    Kind.BYTES: bytes_text,
    Kind.SPAN: duration_text,
    Kind.TIME: lambda ms: time_text(ms).removesuffix(" UTC"),
}
_MOST = 14
"""Maximum number of bars in a chart of names."""
Kinds = Mapping[str, Kind]
"""Columns of a table in their order."""


def words(kind: Kind, value: object) -> str:
    """Return the value as readable text; a dash for None. Times are UTC."""
    return NOTHING if value is None else _WORDS.get(kind, str)(value)


@attrs.frozen
class Figure:
    """A number with its name; `fault`: it should be 0."""

    name: str
    value: int
    kind: Kind = Kind.COUNT
    fault: bool = False


@attrs.frozen
class Table:
    """The first rows of a table with `total` rows; `fault`: it should have none."""

    name: str
    kinds: Kinds
    rows: tuple[tuple[Any, ...], ...]
    total: int
    fault: bool = False


@attrs.frozen
class Bars:
    """A chart with a bar for each label. Bars of times are side by side, others below each other, the first on top."""

    title: str
    labels: tuple[str, ...]
    values: tuple[float, ...]
    kind: Kind = Kind.COUNT
    of_times: bool = False


@attrs.frozen
class Findings:
    """All results of a job. Faults make it unsound."""

    title: str
    figures: tuple[Figure, ...] = ()
    tables: tuple[Table, ...] = ()
    pictures: tuple[Bars, ...] = ()

    @property
    def sound(self) -> bool:
        """Return True if the job found no faults."""
        return not any(one.fault and one.value for one in self.figures) and not any(
            one.fault and one.total for one in self.tables
        )


def first_rows(
    name: str, frame: DataFrame, kinds: Kinds, order: Sequence[str | Column], limit: int, *, fault: bool = False
) -> Table:
    """Return the first `limit` rows in an order; only they come to the driver."""
    rows = frame.select(*kinds).orderBy(*order).limit(limit).collect()
    total = len(rows) if len(rows) < limit else frame.count()
    return Table(name, kinds, tuple(map(tuple, rows)), total, fault)


def named_bars(title: str, pairs: Iterable[tuple[str, int | None]], kind: Kind = Kind.COUNT) -> Bars:
    """Return a bar for each of the first pairs of a name and a value."""
    first = list(itertools.islice(pairs, _MOST))
    return Bars(title, tuple(name for name, _ in first), tuple(float(value or 0) for _, value in first), kind)


def bars(title: str, table: Table, label: str, value: str) -> Bars:
    """Return two columns of a table as a chart: all rows of times, or the first rows of names."""
    names = list(table.kinds)
    label_kind, kind = table.kinds[label], table.kinds[value]
    of_times = label_kind is Kind.TIME
    pairs = [
        (row[names.index(label)], row[names.index(value)]) for row in table.rows if row[names.index(label)] is not None
    ]
    if not of_times:
        return named_bars(title, ((words(label_kind, one), size) for one, size in pairs), kind)
    labels, values = tuple(words(label_kind, one) for one, _ in pairs), tuple(float(one or 0) for _, one in pairs)
    return Bars(title, labels, values, kind, of_times)
