"""The report as one HTML page without outside parts: the picture stands in it as SVG, the style in its head."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence

import attrs

from twisted_mq.spark.report.report_data import LISTED, StoreReport
from twisted_mq.spark.report.report_words import (
    NOTHING,
    bytes_text,
    count_or_dash,
    count_text,
    duration_text,
    offsets_text,
    time_text,
)

_STYLE = """
:root { color-scheme: light; --ink: #1f2933; --faint: #616e7c; --line: #e4e7eb; --bad: #b42318; --good: #0f7b57; }
* { box-sizing: border-box; }
body { margin: 0; background: #f5f7fa; color: var(--ink); font: 15px/1.5 system-ui, "Segoe UI", sans-serif; }
main { max-width: 1120px; margin: 0 auto; padding: 32px 20px 64px; }
h1 { margin: 0; font-size: 26px; } h2 { margin: 36px 0 10px; font-size: 18px; }
p { margin: 4px 0; } .faint { color: var(--faint); } code { font-size: 13px; overflow-wrap: anywhere; }
.tiles { display: grid; grid-template-columns: repeat(4, 1fr); gap: 12px; margin: 22px 0; }
@media (max-width: 640px) { .tiles { grid-template-columns: repeat(2, 1fr); } }
.tile, .card { background: #fff; border: 1px solid var(--line); border-radius: 10px; }
.tile { padding: 12px 16px; } .tile b { display: block; font-size: 24px; font-weight: 650; line-height: 1.25; }
.tile.bad b { color: var(--bad); } .tile.good b { color: var(--good); }
.card { overflow-x: auto; } .picture { padding: 14px; } .picture svg { width: 100%; height: auto; }
table { width: 100%; border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: 6px 14px; text-align: left; border-bottom: 1px solid var(--line); }
th { color: var(--faint); font-weight: 550; font-size: 13px; white-space: nowrap; } td { overflow-wrap: anywhere; }
tr:last-child td { border-bottom: 0; } .number { text-align: right; white-space: nowrap; overflow-wrap: normal; }
td:first-child { min-width: 180px; } .plain { white-space: nowrap; }
td.bad { color: var(--bad); font-weight: 600; }
"""


@attrs.frozen
class Field:
    """A table's column: its heading, how its cells look (`number`, `plain`: one line, `text`), whether they tell faults."""

    name: str
    look: str = "number"
    fault: bool = False


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
    """The whole page; `picture` is an SVG element."""
    title = "RocketMQ store report"
    parts = [
        f"<h1>{title}</h1>",
        f"<p class=faint>{_escape(_span(report))}</p>",
        f"<p class=faint><code>{_escape(report.path)}</code></p>",
        _tiles(report),
        f"<div class='card picture'>{picture}</div>",
        *_tables(report),
    ]
    body = "\n".join(parts)
    head = f"<meta charset=utf-8><meta name=viewport content='width=device-width'><title>{title}</title>"
    return f"<!doctype html>\n<html lang=en><head>{head}<style>{_STYLE}</style></head>\n<body><main>{body}</main></body></html>\n"


def svg_element(svg: str) -> str:
    """The svg element of a file: without XML declaration and document type, which have no place inside a page."""
    return svg[svg.index("<svg") :]


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
    facts += [(name, count_text(count), "bad" if count else "good") for name, count in checks]
    tiles = [f"<div class='tile {state}'><b>{value}</b>{name}</div>" for name, value, state in facts]
    return f"<div class=tiles>{''.join(tiles)}</div>"


def _tables(report: StoreReport) -> Iterable[str]:
    yield _table("Topics", _TOPIC_FIELDS, _topic_rows(report), "Latency is from born (producer's clock) to stored.")
    yield _table("Queues", _QUEUE_FIELDS, _queue_rows(report))
    gaps = [(gap.topic, gap.queueId, offsets_text(gap.firstMissing, gap.lastMissing), *gap[4:]) for gap in report.gaps]
    yield _table("Gaps in queue offsets", _GAP_FIELDS, gaps, _cut(gaps, report.total("gaps")))
    duplicates = list(report.duplicates)
    note = _cut(duplicates, report.total("duplicate_keys"))
    yield _table("Duplicates by unique key", _DUPLICATE_FIELDS, duplicates, note)
    damage = [(one.file, one.physical_offset, one.length, one.reason) for one in report.damage]
    yield _table("Damaged stretches", _DAMAGE_FIELDS, damage)


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


def _table(title: str, fields: Sequence[Field], rows: Sequence[Sequence[object]], note: str = "") -> str:
    heading = f"<h2>{title}</h2>" + (f"<p class=faint>{note}</p>" if note else "")
    if not rows:
        return f"<h2>{title}</h2><p class=faint>none</p>"
    head = "".join(f"<th class={field.look}>{field.name}</th>" for field in fields)
    lines = (f"<tr>{''.join(map(_cell, fields, row))}</tr>" for row in rows)
    return (
        f"{heading}<div class=card><table><thead><tr>{head}</tr></thead><tbody>{''.join(lines)}</tbody></table></div>"
    )


def _cell(field: Field, value: object) -> str:
    text = _escape(str(value))
    bad = " bad" if field.fault and text != NOTHING else ""
    return f"<td class='{field.look}{bad}'>{text}</td>"


def _escape(text: str) -> str:
    return html.escape(text)
