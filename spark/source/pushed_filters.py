"""Conditions of a query that a source can use to read less; Spark evaluates all of them again on the rows."""

from __future__ import annotations

import datetime
import functools
import re
from collections.abc import Callable, Sequence
from typing import Any

import attrs
from pyspark.sql.datasource import (
    DataSourceReader,
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    LessThan,
    LessThanOrEqual,
    StringStartsWith,
)

from twisted_mq.spark.source.options import ReadOptions

_NAMES = {"topic": "topics", "queueId": "queue_ids", "tags": "tags"}
"""Column -> field of MessageConditions."""


def narrowed(options: ReadOptions, filters: Sequence[Filter]) -> ReadOptions:
    """Return the options limited by these conditions on topic, queue, tags, store time and offset; all conditions must hold."""
    for one in filters:
        column = getattr(one, "attribute", None)
        narrow = _NARROWED.get((column[0], type(one))) if column and len(column) == 1 else None
        if narrow is not None:
            options = narrow(options, getattr(one, "value"))  # noqa: B009
    return options


def _among(column: str, options: ReadOptions, values: Sequence[Any]) -> ReadOptions:
    known = getattr(options.selection, _NAMES[column])
    left = tuple(value for value in values if value is not None and (not known or value in known))
    if not left:
        return attrs.evolve(options, end_offset=0)
    return _selecting(options, **{_NAMES[column]: left})


def _selecting(options: ReadOptions, **fields: Any) -> ReadOptions:
    return attrs.evolve(options, selection=attrs.evolve(options.selection, **fields))


def _topics_beginning(options: ReadOptions, prefix: str) -> ReadOptions:
    if options.selection.topic_pattern is not None:
        return options
    return _selecting(options, topic_pattern=re.compile(re.escape(prefix) + "(?s:.*)"))


def _from_time(options: ReadOptions, time: datetime.datetime) -> ReadOptions:
    return _selecting(options, start_time_ms=max(_ms(time), _or(options.selection.start_time_ms, _ms(time))))


def _to_time(options: ReadOptions, time: datetime.datetime) -> ReadOptions:
    return _selecting(options, end_time_ms=min(_ms(time) + 1, _or(options.selection.end_time_ms, _ms(time) + 1)))


def _or(value: int | None, other: int) -> int:
    return other if value is None else value


def _ms(time: datetime.datetime) -> int:
    """Return whole ms, rounded down; a time without a zone is in this machine's zone, as passed by Spark."""
    return int(time.timestamp() * 1_000_000) // 1000


def _from_offset(options: ReadOptions, offset: int) -> ReadOptions:
    return attrs.evolve(options, least_offset=max(options.least_offset, offset))


def _to_offset(options: ReadOptions, offset: int) -> ReadOptions:
    return attrs.evolve(options, end_offset=min(options.end_offset, offset + 1))


Narrow = Callable[[ReadOptions, Any], ReadOptions]


def _names(column: str) -> dict[tuple[str, type[Filter]], Narrow]:
    def one(options: ReadOptions, value: Any) -> ReadOptions:
        return _among(column, options, (value,))

    return {(column, EqualTo): one, (column, EqualNullSafe): one, (column, In): functools.partial(_among, column)}


def _range(column: str, low: Narrow, high: Narrow) -> dict[tuple[str, type[Filter]], Narrow]:
    return {
        (column, GreaterThan): low,
        (column, GreaterThanOrEqual): low,
        (column, LessThan): high,
        (column, LessThanOrEqual): high,
        (column, EqualTo): lambda options, value: high(low(options, value), value),
    }


_NARROWED: dict[tuple[str, type[Filter]], Narrow] = {
    ("topic", StringStartsWith): _topics_beginning,
    **_names("topic"),
    **_names("queueId"),
    **_names("tags"),
    **_range("storeTimestamp", _from_time, _to_time),
    **_range("physicalOffset", _from_offset, _to_offset),
}


class PushedFilters:
    """Callable that Spark uses as a reader's `pushFilters`.

    Spark refuses readers with a method of that name while spark.sql.python.filterPushdown.enabled is off, and does not pass the
    setting to a data source. So this replaces the inherited method, which Spark calls only while the setting is on.
    """

    __func__ = staticmethod(DataSourceReader.pushFilters)

    def __init__(self, narrow: Callable[[Sequence[Filter]], None]) -> None:
        self._narrow = narrow

    def __call__(self, filters: Sequence[Filter]) -> Sequence[Filter]:
        """Use the filters, and return all of them for Spark."""
        self._narrow(filters)
        return filters
