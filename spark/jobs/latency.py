"""Time from born (producer's clock) to stored (broker's clock), in ms.

A negative latency means that the clocks differ. A message that the broker stores again (a due delayed message, a retry, a
committed transaction) keeps its born time, so its latency includes the waiting time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

COLUMNS = ("topic", "bornTimestamp", "storeTimestamp")
PART_COLUMNS = (*COLUMNS, "bornHost")

STEPS_MS = (0, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 60_000, 600_000, 3_600_000)
"""Lower ends of the steps of a histogram. The last step is open; negative values have their own step before the first."""

PARTS: dict[str, Callable[[], Column]] = {
    "topic": lambda: F.col("topic"),
    "hour": lambda: F.unix_millis(F.date_trunc("hour", "storeTimestamp")),
    "host": lambda: F.regexp_extract("bornHost", r"^\[?(.*?)\]?:\d+$", 1),
}
"""Columns to group latencies by: the hour of storing in ms, the producer's address without its port, and so on."""


def _latency() -> Column:
    return F.unix_millis("storeTimestamp") - F.unix_millis("bornTimestamp")


def by_topic(messages: DataFrame) -> DataFrame:
    """Return topic, p50, p99 (to a ten-thousandth of the ranks), max; null if no message has both times."""
    latency = _latency()
    return messages.groupBy("topic").agg(
        F.percentile_approx(latency, 0.5).alias("p50"),
        F.percentile_approx(latency, 0.99).alias("p99"),
        F.max(latency).alias("max"),
    )


def by_parts(messages: DataFrame, parts: Sequence[str]) -> DataFrame:
    """Return for each combination of PARTS: messages, p50, p90, p99, p999 (as in by_topic), max."""
    latency = _latency()
    ranks = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p999": 0.999}
    return messages.groupBy(*(PARTS[part]().alias(part) for part in parts)).agg(
        F.count("*").alias("messages"),
        *(F.percentile_approx(latency, rank).alias(name) for name, rank in ranks.items()),
        F.max(latency).alias("max"),
    )


def histogram(messages: DataFrame) -> DataFrame:
    """Return one row with a count of messages per step: `negative`, then `ms0`, `ms1`, `ms2`, ... from STEPS_MS."""
    latency = _latency()
    steps = [F.count_if(latency < STEPS_MS[0]).alias("negative")]
    for step, following in zip(STEPS_MS, (*STEPS_MS[1:], None), strict=True):
        inside = latency >= step if following is None else (latency >= step) & (latency < following)
        steps.append(F.count_if(inside).alias(f"ms{step}"))
    return messages.agg(*steps)
