"""The charts of a store report: messages by topic, latency from born to stored, messages over time."""

from __future__ import annotations

from collections.abc import Sequence

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from twisted_mq.spark.jobs.topics import TopicKind
from twisted_mq.spark.report.picture_parts import (
    BLUE,
    FAINT,
    TEAL,
    count_axis,
    label_bars,
    say_none,
    styled,
)
from twisted_mq.spark.report.report_data import StoreReport, TopicFigures
from twisted_mq.spark.report.report_words import bytes_text, count_text, duration_text, step_texts, time_text

TOPICS_SHOWN = 14
_LOWER_INCHES = 3.0
_KIND_COLOURS = {
    TopicKind.USER: BLUE,
    TopicKind.RETRY: "#d9822b",
    TopicKind.DEAD_LETTER: "#c23030",
    TopicKind.SYSTEM: "#9aa5b1",
}


def draw_report(report: StoreReport) -> Figure:
    """Draw the three charts; of many topics only the largest are shown."""
    with styled():
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


def _shown_topics(report: StoreReport) -> list[TopicFigures]:
    """Return the largest topics in the report's order: user topics before system topics."""
    return sorted(report.topics, key=lambda topic: (topic.kind, -topic.messages))[:TOPICS_SHOWN]


def _draw_topics(axes: Axes, topics: Sequence[TopicFigures], all_topics: int) -> None:
    more = f" ({len(topics)} of {all_topics})" if len(topics) < all_topics else ""
    axes.set_title(f"Messages a topic{more}")
    counts = [float(topic.messages) for topic in topics]
    axes.barh(range(len(topics)), counts, color=[_KIND_COLOURS[topic.kind] for topic in topics], height=0.66)
    texts = [f"{count_text(topic.messages)} · {bytes_text(topic.size_bytes)}" for topic in topics]
    label_bars(axes, [topic.topic for topic in topics], counts, texts)
    _explain_colours(axes, topics)


def _explain_colours(axes: Axes, topics: Sequence[TopicFigures]) -> None:
    kinds = sorted({topic.kind for topic in topics})
    if len(kinds) < 2:
        return
    patches = [matplotlib.patches.Patch(color=_KIND_COLOURS[kind], label=kind.words) for kind in kinds]
    axes.legend(handles=patches, loc="lower right", frameon=False, labelcolor=FAINT, handlelength=1, handleheight=1)


def _draw_latency(axes: Axes, counts: Sequence[int]) -> None:
    """Draw bars from the first step with messages to the last."""
    axes.set_title("From born to stored")
    filled = [row for row, count in enumerate(counts) if count]
    if not filled:
        return say_none(axes)
    steps = range(filled[0], filled[-1] + 1)
    axes.bar(range(len(steps)), [counts[step] for step in steps], color=TEAL, width=0.86)
    names = step_texts()
    axes.set_xticks(range(len(steps)), [names[step] for step in steps], rotation=35, ha="right", rotation_mode="anchor")
    axes.set_ylabel("messages")
    count_axis(axes)


def _draw_time(axes: Axes, report: StoreReport) -> None:
    axes.set_title("Stored over time")
    first, last = report.first_stored_ms, report.last_stored_ms
    if first is None or last is None:
        return say_none(axes)
    counts = report.over_time
    axes.bar([row + 0.5 for row in range(len(counts))], counts, color=BLUE, width=1)
    axes.set_xlim(0, len(counts))
    axes.set_xticks((0, len(counts)), (time_text(first), time_text(last)))
    begin, end = axes.get_xticklabels()
    begin.set_horizontalalignment("left")
    end.set_horizontalalignment("right")
    each = max(last - first, len(counts)) // len(counts)
    axes.set_ylabel(f"messages in {duration_text(each)}")
    count_axis(axes)
