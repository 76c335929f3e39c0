"""Queues looked at in stretches, so that no task sorts one as a whole; what meets between two is compared behind that."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

STRETCH_OFFSETS = 1 << 18
"""Queue offsets, or sequences, that one task sorts at a time."""


def stretch_of(offset: str) -> Column:
    """The number of an offset's stretch."""
    return F.floor(F.col(offset) / STRETCH_OFFSETS)


def at_gaps(rows: DataFrame, line: Sequence[str], place: Sequence[str], more: Sequence[str] = ()) -> DataFrame:
    """The rows at edges of stretches and behind gaps, each with `previous`: place and more of the one before it in its line.

    Rows of a line are in the order of `place`, whose first column is an offset: a gap is where it goes up by more than one.
    The column `stretch` is that offset's.
    """
    offset, here = place[0], F.struct(*place, *more)
    inside = Window.partitionBy(*line, "stretch").orderBy(*place)
    placed = rows.select(
        "*", F.lag(here).over(inside).alias("inStretch"), F.lead(offset).over(inside).alias("following")
    )
    edge = F.col("inStretch").isNull() | F.col("following").isNull()
    kept = placed.where(edge | (F.col(offset) > F.col(f"inStretch.{offset}") + 1))
    before = F.lag(here).over(Window.partitionBy(*line).orderBy(*place))
    return kept.select("*", F.coalesce("inStretch", before).alias("previous"))
