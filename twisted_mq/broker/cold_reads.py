"""Limits how fast groups may read messages that are not in memory any more (Apache: ColdDataCgCtrService, without its
adaptive strategies).

A read is cold if it is further behind the log's end than accessMessageInMemoryMaxRatio of the memory; Apache asks the
kernel which pages are in memory. Thresholds that operators set are kept until the broker stops, as in Apache.
"""

from __future__ import annotations

from collections.abc import Callable

import attrs

from twisted_mq.broker.options import BrokerOptions
from twisted_mq.logs import Logger
from twisted_mq.protocol.codes import ResponseCode
from twisted_mq.protocol.errors import BrokerError

PERIOD_SECONDS = 5.0
"""The period that a threshold applies to."""
REMEMBERED_MS = 60_000
"""A group without cold reads for this long is forgotten."""
MOST_THRESHOLDS = 10_000
BUSY = "This consumer group is reading cold data. It has been flow control"


@attrs.define
class ColdRead:
    """The cold reads of one group: bytes since the period began; times in ms."""

    size_bytes: int
    last_ms: int
    created_ms: int


@attrs.define(eq=False)
class ColdReads:
    """Counts and limits cold reads. `thresholds` are bytes per period by group, instead of cgColdReadThreshold."""

    options: BrokerOptions
    now_ms: Callable[[], int]
    thresholds: dict[str, int] = attrs.field(factory=dict)
    groups: dict[str, ColdRead] = attrs.field(factory=dict)
    size_bytes: int = 0
    """The bytes that all groups have read since the period began."""
    log = Logger()

    def set_threshold(self, group: str, threshold: int) -> None:
        """Set a group's threshold. Raises BrokerError for one group too many."""
        if group not in self.thresholds and len(self.thresholds) >= MOST_THRESHOLDS:
            raise BrokerError(ResponseCode.SYSTEM_ERROR, f"{MOST_THRESHOLDS} groups already have a threshold")
        self.thresholds[group] = threshold

    def take(self, group: str, size_bytes: int, *, pushed: bool) -> None:
        """Count a cold read. Raises BrokerError if the group's messages are pushed to it and it has read too much.

        A group that pulls by itself is only counted: its program would have to know what the refusal means.
        """
        if pushed and self._is_over(group):
            raise BrokerError(ResponseCode.SYSTEM_BUSY, BUSY)
        now = self.now_ms()
        read = self.groups.setdefault(group, ColdRead(0, now, now))
        read.size_bytes += size_bytes
        read.last_ms = now
        self.size_bytes += size_bytes

    def _is_over(self, group: str) -> bool:
        read = self.groups.get(group)
        if read is None:
            return False
        threshold = self.thresholds.get(group, self.options.cg_cold_read_threshold)
        return read.size_bytes >= threshold or self.size_bytes >= self.options.global_cold_read_threshold

    def begin_period(self) -> None:
        """Restart the count; called each PERIOD_SECONDS."""
        oldest = self.now_ms() - REMEMBERED_MS
        self.groups = {group: read for group, read in self.groups.items() if read.last_ms > oldest}
        for read in self.groups.values():
            read.size_bytes = 0
        self.size_bytes = 0

    def figures(self) -> dict[str, object]:
        """Return thresholds and reads as Apache's broker shows them."""
        runtime = {
            group: {
                "coldAcc": read.size_bytes,
                "createTimeMills": read.created_ms,
                "lastColdReadTimeMills": read.last_ms,
            }
            for group, read in self.groups.items()
        }
        return {
            "runtimeTable": runtime,
            "configTable": dict(self.thresholds),
            "cgColdReadThreshold": self.options.cg_cold_read_threshold,
            "globalColdReadThreshold": self.options.global_cold_read_threshold,
            "globalAcc": self.size_bytes,
        }
