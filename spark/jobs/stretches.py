"""Queues processed in stretches, so that no task sorts a whole queue; the edges of stretches are compared after that."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

STRETCH_OFFSETS = 1 << 18
"""Number of queue offsets, or sequences, that one task sorts at a time."""


def stretch_of(offset: str) -> Column:
    """Return the number of an offset's stretch."""
    return F.floor(F.col(offset) / STRETCH_OFFSETS)


def at_gaps(rows: DataFrame, line: Sequence[str], place: Sequence[str], more: Sequence[str] = ()) -> DataFrame:
    """Return the rows at edges of stretches and after gaps, each with `previous`: place and other columns of the row before it in
    its line.

    Rows of a line are in the order of `place`, whose first column is an offset: a gap is a step of more than one. The column
    `stretch` belongs to that offset.
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
