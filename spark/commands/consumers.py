"""Jobs about consumption: lag, dead letters and retries, unfinished transactions and late timers."""

from __future__ import annotations

from pyspark.sql import functions as F

from twisted_mq.spark.commands.stores import Stores
from twisted_mq.spark.findings.findings import Figure, Findings, Kind, Kinds, bars, first_rows, named_bars
from twisted_mq.spark.jobs import dead_letters as dead_letters_job
from twisted_mq.spark.jobs import half_messages as half_job
from twisted_mq.spark.jobs import lag as lag_job
from twisted_mq.spark.jobs import timers as timers_job

_LAG_KINDS: Kinds = {
    "group": Kind.TEXT, "topic": Kind.TEXT, "store": Kind.TEXT, "queueId": Kind.PLAIN, "committed": Kind.PLAIN,
    "end": Kind.PLAIN, "lag": Kind.COUNT, "behind": Kind.SPAN, "oldestUnread": Kind.TIME,
}  # fmt: skip
_BACKLOG_KINDS: Kinds = {"stored": Kind.TIME, "group": Kind.TEXT, "topic": Kind.TEXT, "unread": Kind.COUNT}
_TIMES: Kinds = {"firstStored": Kind.TIME, "lastStored": Kind.TIME}
_DEAD_KINDS: Kinds = {"group": Kind.TEXT, "origin": Kind.TEXT, "messages": Kind.COUNT, **_TIMES}
_RETRY_KINDS: Kinds = {"group": Kind.TEXT, "retries": Kind.COUNT, "distinct": Kind.COUNT, "most": Kind.COUNT}
_STORM_KINDS: Kinds = {"stored": Kind.TIME, "group": Kind.TEXT, "retries": Kind.COUNT}
_HALF_KINDS: Kinds = {
    "topic": Kind.TEXT, "producerGroup": Kind.TEXT, "uniqKey": Kind.TEXT, "stored": Kind.TIME, "physicalOffset": Kind.PLAIN,
}  # fmt: skip
_TIMER_KINDS: Kinds = {
    "topic": Kind.TEXT, "uniqKey": Kind.TEXT, "reconsumeTimes": Kind.PLAIN, "planned": Kind.TIME,
    "physicalOffset": Kind.PLAIN,
}  # fmt: skip
_LATE_KINDS: Kinds = {
    "topic": Kind.TEXT, "delivered": Kind.COUNT, "waiting": Kind.COUNT, "p50": Kind.SPAN, "p99": Kind.SPAN,
    "max": Kind.SPAN,
}  # fmt: skip
_ENDS = (half_job.COMMITTED, half_job.ROLLED_BACK, half_job.GIVEN_UP, half_job.ASKED, half_job.OPEN)


def lag(stores: Stores, limit: int, every: str) -> Findings:
    """Compute the lag of groups, and the store times of unread messages."""
    messages, offsets = stores.messages(lag_job.COLUMNS), lag_job.committed(stores.table("config"))
    queues = lag_job.by_queue(messages, offsets).withColumn("behind", F.col("newest") - F.col("oldestUnread"))
    backlog = lag_job.over_time(messages, offsets, every)
    by_queue = first_rows("Queues", queues, _LAG_KINDS, [F.desc("lag"), "group", "topic", "store", "queueId"], limit)
    by_time = first_rows("Stored, not read", backlog, _BACKLOG_KINDS, ["stored", "group", "topic"], limit)
    groups = queues.groupBy("group").agg(F.sum("lag").alias("lag")).orderBy(F.desc("lag"), "group").collect()
    behind = [row for row in groups if row.lag]
    figures = (
        Figure("groups", len(groups)),
        Figure("groups behind", len(behind)),
        Figure("messages not read", sum(row.lag for row in groups)),
    )
    picture = named_bars("Messages not read", ((row.group, row.lag) for row in behind))
    return Findings("lag", figures, (by_queue, by_time), (picture,) if behind else ())


def dead_letters(stores: Stores, limit: int, every: str, storm: int) -> Findings:
    """Count dead letters and retries, and find time steps with at least `storm` retries."""
    messages = stores.messages(dead_letters_job.COLUMNS, topicPattern=dead_letters_job.PATTERN)
    dead = dead_letters_job.dead_letters(messages)
    tables = (
        first_rows("Dead letters", dead, _DEAD_KINDS, [F.desc("messages"), "group", "origin"], limit),
        first_rows("Retries", dead_letters_job.retries(messages), _RETRY_KINDS, [F.desc("retries"), "group"], limit),
        first_rows("Storms", dead_letters_job.storms(messages, storm, every), _STORM_KINDS, ["stored", "group"], limit),
    )
    figures = (
        Figure("dead letters", sum(row[2] for row in tables[0].rows)),
        Figure("retries", sum(row[1] for row in tables[1].rows)),
        Figure("storms", tables[2].total),
    )
    pictures = tuple(
        bars(title, table, "group", value)
        for title, table, value in (("Dead letters", tables[0], "messages"), ("Retries", tables[1], "retries"))
        if table.rows
    )
    return Findings("dead letters", figures, tables, pictures)


def unfinished(stores: Stores, limit: int, slack_ms: int) -> Findings:
    """Find half messages without an end, and timers that were not delivered `slack_ms` after they were due."""
    columns = dict.fromkeys((*half_job.COMMIT_COLUMNS, *timers_job.COPY_COLUMNS))
    messages = stores.messages(columns)
    transactions = stores.messages(half_job.COLUMNS, topic=",".join(half_job.TOPICS))
    waiting = stores.messages(timers_job.COLUMNS, topic=",".join(timers_job.TOPICS))
    halves = half_job.half_messages(transactions, messages)
    timers = timers_job.timers(waiting, stores.table("consumequeue"), messages)
    (newest,) = messages.agg(F.max(F.unix_millis("storeTimestamp"))).first() or (None,)
    overdue = timers.where(F.col("delivered").isNull() & (F.col("planned") < F.lit((newest or 0) - slack_ms)))
    ends = {row.end: row["count"] for row in halves.groupBy("end").count().collect()}
    open_halves = halves.where(F.col("end") == half_job.OPEN)
    late = first_rows("Timers", timers_job.lateness(timers), _LATE_KINDS, ["topic"], limit)
    tables = (
        first_rows("Half messages without an end", open_halves, _HALF_KINDS, ["stored", "physicalOffset"], limit),
        first_rows("Overdue", overdue, _TIMER_KINDS, ["planned", "physicalOffset"], limit, fault=True),
        late,
    )
    figures = tuple(Figure(f"half messages {end}", ends.get(end, 0)) for end in _ENDS)
    pictures = [named_bars("Half messages", ends.items())] if ends else []
    if late.rows:
        pictures.append(bars("p99 later than due", late, "topic", "p99"))
    return Findings("unfinished", figures, tables, tuple(pictures))
