"""Plan of a slice's files: which task writes the rows of a topic's day, so that a small one has one file and a large one few.

Spark's own rebalancing splits a task that is too large by the tasks that its rows come from. Then each part has rows of all its
topics: 1,000 topics of 256 MiB in 16 tasks would be 64,000 files instead of 1,000.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Iterator

import attrs
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from twisted_mq.spark.commands.targets import DAY

MEASURED = ("physicalOffset", "storeSize")
"""Columns that `measured` needs, besides those of topic and day."""
_PLACED = "_topic string, _day date, _task int, _files int, _first bigint, _last bigint"


@attrs.frozen
class Share:
    """The rows of a topic's day in a slice: their size in the log, their number, and their least and largest offset."""

    topic: str
    day: datetime.date | None
    size_bytes: int
    rows: int
    first: int
    last: int


@attrs.frozen
class FilePlan:
    """The first task and the number of files of each share; a task writes one file of each of its shares."""

    placed: tuple[tuple[Share, int, int], ...]
    tasks: int

    @property
    def most_rows(self) -> int:
        """Return the limit of rows in a file, for topics whose messages are not spread evenly over the slice."""
        return max(2 * -(-share.rows // files) for share, _, files in self.placed)


def measured(rows: DataFrame) -> list[Share]:
    """Return the shares of a slice. Reads its rows once."""
    size, offset = F.sum("storeSize"), F.col("physicalOffset")
    found = rows.groupBy("topic", DAY).agg(size, F.count("*"), F.min(offset), F.max(offset))
    return [Share(*row) for row in found.collect()]


def planned(shares: Iterable[Share], file_bytes: int, tasks: int) -> FilePlan:
    """Plan files of about `file_bytes`, and about so many tasks if all of them can have work."""
    shares = sorted(shares, key=lambda one: (one.topic, str(one.day)))
    most = min(file_bytes, -(-sum(one.size_bytes for one in shares) // tasks))
    placed = tuple(_placed(shares, file_bytes, most))
    return FilePlan(placed, max((task + files for _, task, files in placed), default=0))


def _placed(shares: Iterable[Share], file_bytes: int, most: int) -> Iterator[tuple[Share, int, int]]:
    """Return each share with its first task and its number of files. Small ones share a task up to `most` bytes."""
    free = held = 0
    for share in shares:
        files = max(1, round(share.size_bytes / file_bytes))
        if held and (files > 1 or held + share.size_bytes > most):
            free, held = free + 1, 0
        yield share, free, files
        if files > 1:
            free += files
        else:
            held += max(1, share.size_bytes)


def spread(rows: DataFrame, plan: FilePlan) -> DataFrame:
    """Return the rows in the tasks of the plan. They have topic, day and physicalOffset; a large share is cut by offsets."""
    told = [(share.topic, share.day, task, files, share.first, share.last) for share, task, files in plan.placed]
    places = F.broadcast(rows.sparkSession.createDataFrame(told, _PLACED))
    same = F.col("topic").eqNullSafe(F.col("_topic")) & F.col(DAY).eqNullSafe(F.col("_day"))
    return rows.join(places, same, "left").repartitionById(plan.tasks, _task()).select(*rows.columns)


def _task() -> Column:
    """Return the task of a row: the first one of its share, and on by its offset's place between the share's offsets."""
    length = F.col("_last") - F.col("_first") + 1
    step = F.floor((F.col("physicalOffset") - F.col("_first")) * F.col("_files") / length)
    return (F.col("_task") + F.least(step, F.col("_files") - 1)).cast("int")
