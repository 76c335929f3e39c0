"""Find the messages with a key and their copies, with the index, and in the log after the indexed part."""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from pyspark.sql import functions as F

from twisted_mq.protocol.flags import MessageSysFlag, transaction_value
from twisted_mq.protocol.layouts.index import index_key, key_hash
from twisted_mq.protocol.names.system_topics import (
    CHECK_MAX_TIME_TOPIC,
    DLQ_PREFIX,
    HALF_TOPIC,
    RETRY_PREFIX,
    SCHEDULE_TOPIC,
    TIMER_TOPIC,
)
from twisted_mq.protocol.text.properties import KEY_SEPARATOR
from twisted_mq.spark.columns.makers import Origin, record_batches
from twisted_mq.spark.commands.stores import Stores
from twisted_mq.spark.findings.findings import Figure, Findings, Kind, Kinds, Table, named_bars
from twisted_mq.spark.source.open_log import OpenLog
from twisted_mq.spark.source.queue_reads import LAYOUTS
from twisted_mq.spark.source.stores import Store, directories_in, list_log_files
from twisted_mq.storage.columns.record_columns import RecordColumns, intact_records


def records_at(store: Store, offsets: Iterable[int]) -> Iterator[RecordColumns]:
    """Yield the records that begin at these places, in order; places without a valid record are skipped. Raises LogFileGone."""
    wanted = sorted(set(offsets))
    for file in list_log_files(store):
        inside = [offset - file.first_offset for offset in wanted if file.first_offset <= offset < file.end]
        if inside:
            log = OpenLog(store, file)
            for position in inside:
                size = log.record_size(position)
                if size:
                    yield intact_records(log.window(position, size), np.zeros(1, np.int64))


COLUMNS = (
    "storeTimestamp", "topic", "queueId", "queueOffset", "sysFlag", "reconsumeTimes", "bornTimestamp", "bornHost", "uniqKey",
    "keys", "tags", "physicalOffset", "file", "store", "storeSize",
)  # fmt: skip
_TIMES = ("storeTimestamp", "bornTimestamp")
_KINDS: Kinds = {
    "stored": Kind.TIME, "event": Kind.TEXT, "topic": Kind.TEXT, "queueId": Kind.PLAIN, "queueOffset": Kind.PLAIN,
    "born": Kind.TIME, "bornHost": Kind.TEXT, "uniqKey": Kind.TEXT, "keys": Kind.TEXT, "tags": Kind.TEXT,
    "physicalOffset": Kind.PLAIN, "file": Kind.TEXT, "store": Kind.TEXT, "bytes": Kind.BYTES,
}  # fmt: skip
_WAITING = {
    HALF_TOPIC: "half message",
    SCHEDULE_TOPIC: "delayed",
    TIMER_TOPIC: "timed",
    CHECK_MAX_TIME_TOPIC: "given up",
}
_OF_GROUPS = (RETRY_PREFIX, DLQ_PREFIX)
_Row = Mapping[str, Any]


def search(stores: Stores, limit: int, key: str, topics: Sequence[str], scan: bool) -> Findings:
    """Find the messages whose KEYS or unique key contain `key`, and all copies made by brokers, in the order of storing.

    The index is searched first, and the part of the log that it does not cover is read; with `scan` the whole log is read.
    `topics`: the original topics, empty for all; copies in retry, dead letter and delay topics are included.
    """
    indexed, begins = ({}, {}) if scan else _by_index(stores, key, topics)
    rows = [row for store, offsets in indexed.items() for row in _read(store, offsets) if _has(row, key)]
    rows += _scanned(stores, key, topics, begins)
    rows.sort(key=lambda row: (row["storeTimestamp"] or 0, row["store"], row["physicalOffset"]))
    table = Table("Timeline", _KINDS, tuple(map(_line, rows[:limit])), len(rows))
    named = sum(map(len, indexed.values()))
    figures = (
        Figure("records", len(rows)),
        Figure("topics", len({row["topic"] for row in rows})),
        Figure("log files", len({(row["store"], row["file"]) for row in rows})),
        Figure("places that the index names", named),
    )
    events = Counter(_event(row) for row in rows)
    return Findings(f"key {key}", figures, (table,), (named_bars("Records", events.items()),) if rows else ())


def _wanted(topic: str, topics: Sequence[str]) -> bool:
    return not topics or topic in topics or topic in _WAITING or topic.startswith(_OF_GROUPS)


def _by_index(stores: Stores, key: str, topics: Sequence[str]) -> tuple[dict[Store, list[int]], dict[Store, int]]:
    """Return by store the places in the index, and the begin of the part of the log that it does not cover."""
    names = {topic for store in stores.ends for layout in LAYOUTS for topic in directories_in(store, layout.directory)}
    hashes = [key_hash(index_key(topic, key)) for topic in sorted(names) if _wanted(topic, topics)]
    place = F.when(F.col("keyHash").isin(hashes), F.col("physicalOffset"))
    found = (
        stores.table("index")
        .groupBy("store")
        .agg(F.max("physicalOffset").alias("last"), F.collect_set(place).alias("places"))
    )
    by_name = {row.store: row for row in found.collect()}
    known = {store: by_name[store.name] for store in stores.ends if store.name in by_name}
    return {store: row.places for store, row in known.items()}, {store: row.last + 1 for store, row in known.items()}


def _read(store: Store, offsets: Sequence[int]) -> Iterator[_Row]:
    origin = Origin(store.name, store.broker_name)
    for records in records_at(store, offsets):
        for batch in record_batches(records, COLUMNS, origin=origin):
            for row in batch.to_pylist():
                yield {**row, **{name: _ms(row[name]) for name in _TIMES}}


def _has(row: _Row, key: str) -> bool:
    """Return True if the message has the key; different keys may have one hash."""
    return key == row["uniqKey"] or key in (row["keys"] or "").split(KEY_SEPARATOR)


def _scanned(stores: Stores, key: str, topics: Sequence[str], begins: Mapping[Store, int]) -> list[_Row]:
    in_keys = F.array_contains(F.split("keys", KEY_SEPARATOR), key)
    messages = stores.messages(COLUMNS, begins).where((F.col("uniqKey") == key) | in_keys)
    found = messages.withColumns({name: F.unix_millis(name) for name in _TIMES}).collect()
    return [row.asDict() for row in found if _wanted(row.topic, topics)]


def _line(row: _Row) -> tuple[Any, ...]:
    """Under _KINDS."""
    place = row["topic"], row["queueId"], row["queueOffset"]
    sender = row["bornTimestamp"], row["bornHost"], row["uniqKey"], row["keys"], row["tags"]
    return (
        row["storeTimestamp"], _event(row), *place, *sender, row["physicalOffset"], row["file"], row["store"],
        row["storeSize"],
    )  # fmt: skip


def _event(row: _Row) -> str:
    topic = row["topic"]
    if topic in _WAITING:
        return _WAITING[topic]
    if topic.startswith(DLQ_PREFIX):
        return "dead letter"
    if topic.startswith(RETRY_PREFIX):
        return f"retry {row['reconsumeTimes']}"
    kind = transaction_value(row["sysFlag"])
    return "committed" if kind == MessageSysFlag.TRANSACTION_COMMIT_TYPE else "stored"


def _ms(time: datetime.datetime | None) -> int | None:
    return None if time is None else round(time.timestamp() * 1000)
