"""Jobs about the contents of stores: volume, latency, gaps, duplicates, and the effect of another retention time."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, Row
from pyspark.sql import functions as F

from twisted_mq.spark.commands.stores import Stores
from twisted_mq.spark.findings.findings import Figure, Findings, Kind, Kinds, Table, bars, first_rows, named_bars
from twisted_mq.spark.jobs import duplicates as duplicates_job
from twisted_mq.spark.jobs import gaps as gaps_job
from twisted_mq.spark.jobs import lag as lag_job
from twisted_mq.spark.jobs import latency as latency_job
from twisted_mq.spark.jobs import retention as retention_job
from twisted_mq.spark.jobs import volume as volume_job

_TIMES: Kinds = {"firstStored": Kind.TIME, "lastStored": Kind.TIME}
_AMOUNTS: Kinds = {"messages": Kind.COUNT, "bytes": Kind.BYTES}
_TOPIC_KINDS: Kinds = {"topic": Kind.TEXT, **_AMOUNTS, "queues": Kind.COUNT, "files": Kind.COUNT, **_TIMES}
_STEP_KINDS: Kinds = {"stored": Kind.TIME, **_AMOUNTS}
_PART_KINDS = {"topic": Kind.TEXT, "hour": Kind.TIME, "host": Kind.TEXT}
_LATENCY_KINDS: Kinds = {"messages": Kind.COUNT, **dict.fromkeys(("p50", "p90", "p99", "p999", "max"), Kind.SPAN)}
_GAP_KINDS: Kinds = {
    "store": Kind.TEXT, "topic": Kind.TEXT, "queueId": Kind.PLAIN, "firstMissing": Kind.PLAIN, "lastMissing": Kind.PLAIN,
    "missing": Kind.COUNT, "afterPhysicalOffset": Kind.PLAIN, "beforePhysicalOffset": Kind.PLAIN,
}  # fmt: skip
_DUPLICATE_KINDS: Kinds = {
    "topic": Kind.TEXT, "uniqKey": Kind.TEXT, "reconsumeTimes": Kind.PLAIN, "sends": Kind.COUNT, "extra": Kind.COUNT,
    "firstPhysicalOffset": Kind.PLAIN, "lastPhysicalOffset": Kind.PLAIN,
}  # fmt: skip
_HOURS_KINDS: Kinds = {"hours": Kind.PLAIN, "files": Kind.COUNT, **_AMOUNTS}
_GONE_KINDS: Kinds = {"hours": Kind.PLAIN, "topic": Kind.TEXT, **_AMOUNTS}
_UNREAD_KINDS: Kinds = {"hours": Kind.PLAIN, "group": Kind.TEXT, "topic": Kind.TEXT, "unread": Kind.COUNT}


def volume(stores: Stores, limit: int, every: str) -> Findings:
    """Count messages and bytes by topic, and in each minute, hour or day."""
    messages = stores.messages(volume_job.TOPIC_COLUMNS)
    found = volume_job.by_topic(messages).orderBy(F.desc("bytes"), "topic").collect()
    topics = Table("Topics", _TOPIC_KINDS, tuple(map(tuple, found[:limit])), len(found))
    times = first_rows("Over time", volume_job.by_step(messages, every), _STEP_KINDS, ["stored"], limit)
    figures = (
        Figure("messages", sum(row.messages for row in found)),
        Figure("bytes", sum(row.bytes for row in found), Kind.BYTES),
        Figure("topics", len(found)),
    )
    pictures = (bars("Bytes a topic", topics, "topic", "bytes"), bars("Messages stored", times, "stored", "messages"))
    return Findings("volume", figures, (topics, times), pictures)


def latency(stores: Stores, limit: int, by: Sequence[str]) -> Findings:
    """Compute percentiles of the time from born to stored."""
    kinds = {**{part: _PART_KINDS[part] for part in by}, **_LATENCY_KINDS}
    parts = latency_job.by_parts(stores.messages(latency_job.PART_COLUMNS), by)
    order: list[str | Column] = [*by] if "hour" in by else [F.desc("p99"), *by]
    found = first_rows(f"By {', '.join(by)}", parts, kinds, order, limit)
    return Findings("latency", (), (found,), (bars("p99 from born to stored", found, by[0], "p99"),))


def gaps(stores: Stores, limit: int) -> Findings:
    """Find missing queue offsets, store by store."""
    found = gaps_job.gaps(stores.messages(gaps_job.COLUMNS))
    table = first_rows("Gaps", found, _GAP_KINDS, ["store", "topic", "queueId", "firstMissing"], limit, fault=True)
    missing = gaps_job.missing_by_queue(found).groupBy("topic").agg(F.sum("missing").alias("missing"))
    sums = missing.orderBy(F.desc("missing"), "topic").collect()
    picture = named_bars("Missing offsets", ((row.topic, row.missing) for row in sums))
    figures = (Figure("gaps", table.total), Figure("missing offsets", sum(row.missing for row in sums)))
    return Findings("gaps", figures, (table,), (picture,) if sums else ())


def duplicates(stores: Stores, limit: int) -> Findings:
    """Find messages that were sent more than once."""
    found = duplicates_job.duplicates(stores.messages(duplicates_job.COLUMNS))
    table = first_rows("Duplicates", found, _DUPLICATE_KINDS, ["topic", "firstPhysicalOffset"], limit, fault=True)
    sums = duplicates_job.extra_by_topic(found).orderBy(F.desc("extra"), "topic").collect()
    picture = named_bars("Extra messages", ((row.topic, row.extra) for row in sums))
    figures = (Figure("keys sent again", table.total), Figure("extra messages", sum(row.extra for row in sums)))
    return Findings("duplicates", figures, (table,), (picture,) if sums else ())


def retention(stores: Stores, limit: int, hours: Sequence[int], now_ms: int | None) -> Findings:
    """Compute what would be deleted if messages were kept for this many hours before `now_ms`. None: the store time of the last
    message."""
    files = retention_job.by_file(stores.messages(retention_job.COLUMNS))
    now = _sum(files.agg(F.max("lastStored")).first()) if now_ms is None else now_ms
    gone = retention_job.gone_after(files, hours, now)
    unread = retention_job.unread(gone, lag_job.committed(stores.table("config")))
    topics = gone.groupBy("hours", "topic").agg(F.sum("messages").alias("messages"), F.sum("bytes").alias("bytes"))
    tables = (
        first_rows("Gone", retention_job.by_hours(gone), _HOURS_KINDS, ["hours"], limit),
        first_rows("Deleted by topic", topics, _GONE_KINDS, ["hours", F.desc("bytes"), "topic"], limit),
        first_rows("Deleted and not read", unread, _UNREAD_KINDS, ["hours", F.desc("unread"), "group", "topic"], limit),
    )
    picture = named_bars("Bytes free", ((f"kept {row[0]} h", row[3]) for row in tables[0].rows), Kind.BYTES)
    figures = (Figure("counted from", now, Kind.TIME),)
    return Findings("retention", figures, tables, (picture,) if tables[0].rows else ())


def _sum(row: Row | None) -> int:
    """Return the only number of a row; 0 for null."""
    return int(row[0] or 0) if row is not None else 0
