"""The picture of a store report: messages a topic, latency from born to stored, messages over time."""

from __future__ import annotations

import io
from collections.abc import Sequence
from contextlib import AbstractContextManager

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from twisted_mq.spark.jobs.topics import TopicKind
from twisted_mq.spark.report.report_data import StoreReport, TopicFigures
from twisted_mq.spark.report.report_words import bytes_text, count_text, duration_text, step_texts, time_text

TOPICS_SHOWN = 14
_NAME_LENGTH = 30
_LOWER_INCHES = 3.0
_INK, _FAINT, _GRID = "#1f2933", "#616e7c", "#e4e7eb"
_BLUE, _TEAL = "#2f6fde", "#12937e"
_KIND_COLOURS = {
    TopicKind.USER: _BLUE,
    TopicKind.RETRY: "#d9822b",
    TopicKind.DEAD_LETTER: "#c23030",
    TopicKind.SYSTEM: "#9aa5b1",
}


def _styled() -> AbstractContextManager[None]:
    return matplotlib.rc_context(
        {
            "font.family": "sans-serif",
            "font.size": 9.5,
            "text.color": _INK,
            "axes.labelcolor": _FAINT,
            "axes.edgecolor": _GRID,
            "axes.titlelocation": "left",
            "axes.titlesize": 11.5,
            "axes.titleweight": "bold",
            "xtick.color": _FAINT,
            "ytick.color": _INK,
            "text.parse_math": False,
            "svg.fonttype": "none",
        }
    )


def draw_report(report: StoreReport) -> Figure:
    """The three charts; of many topics the largest are shown."""
    with _styled():
        shown = _shown_topics(report)
        topics_inches = max(0.3 * len(shown), 1.2) + 0.6
        figure = Figure(figsize=(11, topics_inches + _LOWER_INCHES), layout="constrained", facecolor="white")
        heights = (topics_inches, _LOWER_INCHES)
        upper, lower = figure.subfigures(2, 1, squeeze=False, height_ratios=heights, hspace=0.03)[:, 0]
        _draw_topics(upper.subplots(), shown, len(report.topics))
        left, right = lower.subplots(1, 2)
        _draw_latency(left, report.latency_steps)
        _draw_time(right, report)
        return figure


def picture_bytes(figure: Figure, kind: str) -> bytes:
    """The picture as "png" or "svg"."""
    target = io.BytesIO()
    with _styled():
        figure.savefig(target, format=kind, dpi=130, metadata={"Date": None} if kind == "svg" else None)
    return target.getvalue()


def _shown_topics(report: StoreReport) -> list[TopicFigures]:
    """The largest topics in the report's order: users' own before the broker's."""
    return sorted(report.topics, key=lambda topic: (topic.kind, -topic.messages))[:TOPICS_SHOWN]


def _bare(axes: Axes) -> None:
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.tick_params(length=0)
    axes.set_axisbelow(True)


def _draw_topics(axes: Axes, topics: Sequence[TopicFigures], all_topics: int) -> None:
    more = f" ({len(topics)} of {all_topics})" if len(topics) < all_topics else ""
    axes.set_title(f"Messages a topic{more}")
    rows = range(len(topics))
    counts = [topic.messages for topic in topics]
    axes.barh(rows, counts, color=[_KIND_COLOURS[topic.kind] for topic in topics], height=0.66)
    axes.set_yticks(rows, [_short(topic.topic) for topic in topics])
    axes.invert_yaxis()
    axes.set_xlim(0, max(counts, default=1) * 1.18)
    axes.xaxis.set_visible(False)
    axes.spines["bottom"].set_visible(False)
    _bare(axes)
    for row, topic in enumerate(topics):
        label = f"{count_text(topic.messages)} · {bytes_text(topic.size_bytes)}"
        place = (topic.messages, row)
        axes.annotate(label, place, xytext=(6, 0), textcoords="offset points", va="center", color=_FAINT)
    _explain_colours(axes, topics)


def _explain_colours(axes: Axes, topics: Sequence[TopicFigures]) -> None:
    kinds = sorted({topic.kind for topic in topics})
    if len(kinds) < 2:
        return
    patches = [matplotlib.patches.Patch(color=_KIND_COLOURS[kind], label=kind.words) for kind in kinds]
    axes.legend(handles=patches, loc="lower right", frameon=False, labelcolor=_FAINT, handlelength=1, handleheight=1)


def _draw_latency(axes: Axes, counts: Sequence[int]) -> None:
    """Bars from the first step that has messages to the last."""
    axes.set_title("From born to stored")
    filled = [row for row, count in enumerate(counts) if count]
    if not filled:
        return _say_none(axes)
    steps = range(filled[0], filled[-1] + 1)
    axes.bar(range(len(steps)), [counts[step] for step in steps], color=_TEAL, width=0.86)
    names = step_texts()
    axes.set_xticks(range(len(steps)), [names[step] for step in steps], rotation=35, ha="right", rotation_mode="anchor")
    axes.set_ylabel("messages")
    _count_axis(axes)


def _draw_time(axes: Axes, report: StoreReport) -> None:
    axes.set_title("Stored over time")
    first, last = report.first_stored_ms, report.last_stored_ms
    if first is None or last is None:
        return _say_none(axes)
    counts = report.over_time
    axes.bar([row + 0.5 for row in range(len(counts))], counts, color=_BLUE, width=1)
    axes.set_xlim(0, len(counts))
    axes.set_xticks((0, len(counts)), (time_text(first), time_text(last)))
    begin, end = axes.get_xticklabels()
    begin.set_horizontalalignment("left")
    end.set_horizontalalignment("right")
    each = max(last - first, len(counts)) // len(counts)
    axes.set_ylabel(f"messages in {duration_text(each)}")
    _count_axis(axes)


def _count_axis(axes: Axes) -> None:
    axes.yaxis.set_major_locator(MaxNLocator(5, integer=True))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: count_text(int(value))))
    axes.grid(axis="y", color=_GRID, linewidth=0.8)
    _bare(axes)


def _say_none(axes: Axes) -> None:
    axes.text(0.5, 0.5, "no messages", ha="center", va="center", color=_FAINT, transform=axes.transAxes)
    axes.set_axis_off()


def _short(topic: str) -> str:
    """A topic's name, its middle left out where it is long."""
    if len(topic) <= _NAME_LENGTH:
        return topic
    half = (_NAME_LENGTH - 1) // 2
    return f"{topic[:half]}…{topic[-half:]}"
