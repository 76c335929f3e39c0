"""Draws the traces of a message: a bar for each step, with time from left to right."""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from twisted_mq.admin.found_messages import Shown
from twisted_mq.protocol.messages.trace import (
    ConsumeEndTrace,
    ConsumeStartTrace,
    EndTransactionTrace,
    PublishTrace,
    RecallTrace,
)

WIDTH = 600
"""The picture's width in its units."""
LEAST_WIDTH = 4


@attrs.frozen
class TimelineStep:
    """A step of a message. `ended_ms` is `began_ms` if its duration is unknown."""

    what: str
    group: str
    client: str
    began_ms: int
    ended_ms: int
    success: bool | None
    detail: str = ""

    @property
    def cost_ms(self) -> int:
        return self.ended_ms - self.began_ms


@attrs.frozen
class Bar:
    """A step in the picture."""

    step: TimelineStep
    left: int
    width: int


@attrs.frozen
class Timeline:
    """All steps in the order in which they began."""

    bars: list[Bar]
    began_ms: int
    ended_ms: int


def timeline(traces: Iterable[Shown]) -> Timeline | None:
    """Return the picture; None without a step."""
    shown = list(traces)
    begins = {trace.request_id: trace for trace, _ in shown if isinstance(trace, ConsumeStartTrace)}
    ends = {trace.request_id for trace, _ in shown if isinstance(trace, ConsumeEndTrace)}
    steps = [step for trace, host in shown if (step := _step(trace, host, begins, ends)) is not None]
    return _drawn(sorted(steps, key=lambda one: (one.began_ms, one.ended_ms))) if steps else None


def _step(trace: object, host: str, begins: dict[str, ConsumeStartTrace], ends: set[str]) -> TimelineStep | None:
    if isinstance(trace, PublishTrace):
        end = trace.timestamp + max(0, trace.cost_ms)
        return TimelineStep("sent", trace.group, host, trace.timestamp, end, trace.success, f"to {trace.store_host}")
    if isinstance(trace, ConsumeEndTrace):
        begin = begins.get(trace.request_id)
        cost_ms = max(0, trace.cost_ms)
        began = begin.timestamp if begin is not None else trace.timestamp - cost_ms
        group = begin.group if begin is not None else trace.group
        again = f"attempt {begin.retry_times + 1}" if begin is not None and begin.retry_times else ""
        return TimelineStep("consumed", group, host, began, began + cost_ms, trace.success, again)
    if isinstance(trace, ConsumeStartTrace) and trace.request_id not in ends:
        return TimelineStep(
            "handed out", trace.group, host, trace.timestamp, trace.timestamp, None, "no end was traced"
        )
    if isinstance(trace, EndTransactionTrace):
        return TimelineStep("decided", trace.group, host, trace.timestamp, trace.timestamp, None, trace.state)
    if isinstance(trace, RecallTrace):
        return TimelineStep("called back", trace.group, host, trace.timestamp, trace.timestamp, trace.success)
    return None


def _drawn(steps: list[TimelineStep]) -> Timeline:
    began, ended = min(one.began_ms for one in steps), max(one.ended_ms for one in steps)
    scale = (WIDTH - LEAST_WIDTH) / max(1, ended - began)
    bars = [
        Bar(one, round((one.began_ms - began) * scale), max(LEAST_WIDTH, round(one.cost_ms * scale))) for one in steps
    ]
    return Timeline(bars, began, ended)
