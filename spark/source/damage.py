"""List of the damaged stretches of a store: bytes of a file that do not belong to an intact record, and the reason."""

from __future__ import annotations

from collections.abc import Iterator

import attrs
import pyarrow as pa
from pyspark.sql import SparkSession

from twisted_mq.spark.source.log_stretch import Damage, read_part
from twisted_mq.spark.source.options import ReadOptions
from twisted_mq.spark.source.planning import log_ends, plan_ranges
from twisted_mq.spark.source.splits import LogSplit, plan_splits

_SCHEMA = pa.schema(
    [("file", pa.string()), ("physicalOffset", pa.int64()), ("length", pa.int64()), ("reason", pa.string())]
)
_DDL = "file string, physicalOffset bigint, length bigint, reason string"


def list_damage(store: str) -> list[Damage]:
    """Return all damage of a store in physical order, found in this process. Raises NoCommitLog."""
    return [damage for split in _splits(store) for damage in _split_damage(split)]


def damage_in_parallel(session: SparkSession, store: str) -> list[Damage]:
    """Return the same list, found by Spark tasks, one per split. Raises NoCommitLog."""
    splits = _splits(store)

    def rows(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch[0].to_pylist():
                yield _as_batch(list(_split_damage(splits[number])))

    numbers = session.range(0, len(splits), 1, max(1, len(splits)))
    found = numbers.mapInArrow(rows, _DDL).orderBy("physicalOffset").collect()
    return [Damage(*row) for row in found]


def _splits(store: str) -> list[LogSplit]:
    options = ReadOptions((store,))
    return plan_splits(plan_ranges(options, log_ends(options)))


def _split_damage(split: LogSplit) -> Iterator[Damage]:
    """Return the damage in one split; reads the heads of all its records."""
    return (piece for piece in read_part(split.part) if isinstance(piece, Damage))


def _as_batch(damage: list[Damage]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(
        [dict(zip(_SCHEMA.names, attrs.astuple(one), strict=True)) for one in damage], _SCHEMA
    )
