"""The damaged stretches of a store, as a list: which bytes of which file belong to no intact record, and why."""

from __future__ import annotations

from collections.abc import Iterator

from pyspark.sql import SparkSession

from twisted_mq.spark.source.log_file import LogFile
from twisted_mq.spark.source.log_stretch import Damage, read_stretch
from twisted_mq.spark.source.options import ReadOptions
from twisted_mq.spark.source.splits import LogSplit, plan_splits


def split_damage(split: LogSplit) -> Iterator[Damage]:
    """The damage in one split; reads the heads of all its records."""
    for piece in read_stretch(LogFile(split.path, split.first_offset), split.start, split.end):
        if isinstance(piece, Damage):
            yield piece


def list_damage(store: str) -> list[Damage]:
    """All damage of a store in physical order, found in this process. Raises NoCommitLog."""
    return [damage for split in plan_splits(ReadOptions(store)) for damage in split_damage(split)]


def damage_in_parallel(session: SparkSession, store: str) -> list[Damage]:
    """The same list, found by Spark tasks: one a split. Raises NoCommitLog."""
    splits = plan_splits(ReadOptions(store))
    if not splits:
        return []
    found = session.sparkContext.parallelize(splits, len(splits)).flatMap(split_damage).collect()
    return sorted(found, key=lambda damage: damage.physical_offset)
