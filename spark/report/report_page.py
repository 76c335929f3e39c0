"""The report as one HTML page."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from twisted_mq.spark.report.page_parts import Field, document, escape, picture_card, table, tiles
from twisted_mq.spark.report.report_data import LISTED, StoreReport
from twisted_mq.spark.report.report_words import (
    bytes_text,
    count_or_dash,
    count_text,
    duration_text,
    offsets_text,
    time_text,
)

_TOPIC_FIELDS = (
    Field("Topic", "text"),
    Field("Kind", "plain"),
    Field("Queues"),
    Field("Messages"),
    Field("Bytes"),
    Field("p50"),
    Field("p99"),
    Field("max"),
    Field("Duplicates", fault=True),
    Field("Missing", fault=True),
    Field("Bad CRC", fault=True),
)
_QUEUE_FIELDS = (
    Field("Topic", "text"),
    Field("Queue"),
    Field("Messages"),
    Field("Bytes"),
    Field("Offsets"),
    Field("Missing", fault=True),
    Field("First stored, UTC"),
    Field("Last stored, UTC"),
)
_GAP_FIELDS = (
    Field("Topic", "text"),
    Field("Queue"),
    Field("Missing offsets"),
    Field("Count"),
    Field("Behind the record at"),
    Field("Before the record at"),
)
_DUPLICATE_FIELDS = (
    Field("Topic", "text"),
    Field("Unique key", "text"),
    Field("Tries"),
    Field("Sends"),
    Field("Extra messages"),
    Field("First send at"),
    Field("Last send at"),
)
_DAMAGE_FIELDS = (Field("File", "text"), Field("Physical offset"), Field("Bytes"), Field("Reason", "text"))


def page(report: StoreReport, picture: str) -> str:
    """Return the whole page; `picture` is the text of an SVG file."""
    parts = [
        f"<p class=faint>{escape(_span(report))}</p>",
        f"<p class=faint><code>{escape(report.path)}</code></p>",
        _tiles(report),
        picture_card(picture),
        *_tables(report),
    ]
    return document("RocketMQ store report", parts)


def _span(report: StoreReport) -> str:
    files = f"{count_text(report.files)} commit log file{'' if report.files == 1 else 's'}"
    if report.first_stored_ms is None:
        return f"{files}, no messages"
    return f"{files}, stored from {time_text(report.first_stored_ms)} to {time_text(report.last_stored_ms)}"


def _tiles(report: StoreReport) -> str:
    facts = [
        ("messages", count_text(report.total("messages")), ""),
        ("in records", bytes_text(report.total("size_bytes")), ""),
        ("topics", count_text(len(report.topics)), ""),
        ("queues", count_text(len(report.queues)), ""),
    ]
    checks = [
        ("missing queue offsets", report.total("missing")),
        ("duplicates by unique key", report.total("extra")),
        ("bodies with a wrong CRC", report.total("bad_crc")),
        ("damaged stretches", len(report.damage)),
    ]
    return tiles([*facts, *((name, count_text(count), "bad" if count else "good") for name, count in checks)])


def _tables(report: StoreReport) -> Iterable[str]:
    yield table("Topics", _TOPIC_FIELDS, _topic_rows(report), "Latency is from born (producer's clock) to stored.")
    yield table("Queues", _QUEUE_FIELDS, _queue_rows(report))
    gaps = [(gap.topic, gap.queueId, offsets_text(gap.firstMissing, gap.lastMissing), *gap[5:]) for gap in report.gaps]
    yield table("Gaps in queue offsets", _GAP_FIELDS, gaps, _cut(gaps, report.total("gaps")))
    duplicates = list(report.duplicates)
    note = _cut(duplicates, report.total("duplicate_keys"))
    yield table("Duplicates by unique key", _DUPLICATE_FIELDS, duplicates, note)
    damage = [(one.file, one.physical_offset, one.length, one.reason) for one in report.damage]
    yield table("Damaged stretches", _DAMAGE_FIELDS, damage)


def _topic_rows(report: StoreReport) -> list[Sequence[object]]:
    return [
        (
            topic.topic,
            topic.kind.words,
            count_text(len(topic.queues)),
            count_text(topic.messages),
            bytes_text(topic.size_bytes),
            *map(duration_text, (topic.p50_ms, topic.p99_ms, topic.max_ms)),
            *map(count_or_dash, (topic.extra, topic.missing, topic.bad_crc)),
        )
        for topic in report.topics
    ]


def _queue_rows(report: StoreReport) -> list[Sequence[object]]:
    return [
        (
            queue.topic,
            queue.queue_id,
            count_text(queue.messages),
            bytes_text(queue.size_bytes),
            offsets_text(queue.min_offset, queue.max_offset),
            count_or_dash(queue.missing),
            *(time_text(ms).removesuffix(" UTC") for ms in (queue.first_stored_ms, queue.last_stored_ms)),
        )
        for queue in report.queues
    ]


def _cut(rows: Sequence[object], all_rows: int) -> str:
    return f"The first {LISTED} of {count_text(all_rows)}." if all_rows > len(rows) else ""
