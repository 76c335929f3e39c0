"""Findings as one HTML page."""

from __future__ import annotations

from collections.abc import Iterable

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from twisted_mq.spark.findings.findings import Bars, Findings, Kind, Table, words
from twisted_mq.spark.report.page_parts import Field, document, escape, picture_card, table, tiles
from twisted_mq.spark.report.picture_parts import BLUE, TEAL, count_axis, label_bars, picture_bytes, say_none, styled
from twisted_mq.spark.report.report_words import count_text

_TIMES_INCHES = 3.0
_TIMES_NAMED = 8


def draw(pictures: tuple[Bars, ...]) -> Figure:
    """Draw all charts; there must be at least one."""
    heights = [_TIMES_INCHES if one.of_times else max(0.3 * len(one.labels), 1.0) + 0.6 for one in pictures]
    with styled():
        figure = Figure(figsize=(11, sum(heights)), layout="constrained", facecolor="white")
        places = figure.subplots(len(pictures), 1, squeeze=False, height_ratios=heights)[:, 0]
        for axes, picture in zip(places, pictures, strict=True):
            axes.set_title(picture.title)
            if not picture.values:
                say_none(axes)
            elif picture.of_times:
                _draw_times(axes, picture)
            else:
                _draw_names(axes, picture)
    return figure


def _draw_names(axes: Axes, picture: Bars) -> None:
    axes.barh(range(len(picture.values)), picture.values, color=BLUE, height=0.66)
    texts = [words(picture.kind, int(value)) for value in picture.values]
    label_bars(axes, list(picture.labels), list(picture.values), texts)


def _draw_times(axes: Axes, picture: Bars) -> None:
    axes.bar(range(len(picture.values)), picture.values, color=TEAL, width=0.9)
    named = range(0, len(picture.labels), max(1, len(picture.labels) // _TIMES_NAMED))
    axes.set_xticks(list(named), [picture.labels[place] for place in named], rotation=20, ha="right")
    count_axis(axes)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: words(picture.kind, int(value))))


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
