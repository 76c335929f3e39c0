"""Findings as one HTML page."""

from __future__ import annotations

from collections.abc import Iterable

from twisted_mq.spark.findings.findings import Findings, Kind, Table, words
from twisted_mq.spark.findings.pictures import draw
from twisted_mq.spark.report.page_parts import Field, document, escape, picture_card, table, tiles
from twisted_mq.spark.report.picture_parts import picture_bytes
from twisted_mq.spark.report.report_words import count_text

_LOOKS = {Kind.TEXT: "text", Kind.TIME: "plain"}


def page(findings: Findings, about: str) -> str:
    """Return the whole page; `about` says what was read."""
    return document(f"RocketMQ: {findings.title}", _parts(findings, about))


def _parts(findings: Findings, about: str) -> Iterable[str]:
    yield f"<p class=faint><code>{escape(about)}</code></p>"
    yield tiles(
        (one.name, words(one.kind, one.value), ("bad" if one.value else "good") if one.fault else "")
        for one in findings.figures
    )
    if findings.pictures:
        yield picture_card(picture_bytes(draw(findings.pictures), "svg").decode())
    for one in findings.tables:
        yield _table(one)


def _table(one: Table) -> str:
    fields = [Field(name, _LOOKS.get(kind, "number"), one.fault) for name, kind in one.kinds.items()]
    rows = [[words(kind, value) for kind, value in zip(one.kinds.values(), row, strict=True)] for row in one.rows]
    note = f"The first {len(rows)} of {count_text(one.total)}." if one.total > len(rows) else ""
    return table(one.name, fields, rows, note)
