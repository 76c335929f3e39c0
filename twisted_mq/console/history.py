"""Keeps rates and disks of the last day in memory, so that a chart shows the time before the page was opened."""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Sequence
from sys import intern

import attrs

from twisted_mq.admin.figures import BrokerFigures
from twisted_mq.logs import Logger
from twisted_mq.protocol.errors import RocketMQError

EVERY_SECONDS = 30.0
KEPT = 2880
"""The number of samples in a day."""
MOST_SHOWN = 480
MOST_BROKERS = 256
"""The most brokers whose history is kept: a broker's day takes 0.8 MiB (tests/bench/bench_console.py)."""


@attrs.frozen
class Values:
    """The values of one broker at one time; None for those that it did not report."""

    cluster: str
    name: str
    broker_id: int
    in_rate: float | None
    out_rate: float | None
    disk_ratio: float | None

    @classmethod
    def of(cls, one: BrokerFigures) -> Values:
        # each answer brings strings of its own: interned, a day's samples share them
        return cls(intern(one.cluster), intern(one.name), one.broker_id, one.in_rate, one.out_rate, one.disk_ratio)


@attrs.frozen
class Sample:
    """The values of all brokers at one time."""

    time_ms: int
    brokers: tuple[Values, ...]


def only_of(samples: Sequence[Sample], brokers: Iterable[BrokerFigures]) -> list[Sample]:
    """Return the samples with the values of these brokers alone."""
    known = {(one.cluster, one.name, one.broker_id) for one in brokers}
    return [
        Sample(one.time_ms, tuple(two for two in one.brokers if (two.cluster, two.name, two.broker_id) in known))
        for one in samples
    ]


class History:
    """The samples of a day, the oldest first."""

    log = Logger()

    def __init__(self, ask: Callable[[], Awaitable[Sequence[BrokerFigures]]], now_ms: Callable[[], int]) -> None:
        self._ask = ask
        self._now_ms = now_ms
        self._samples: deque[Sample] = deque(maxlen=KEPT)
        self._asking = False
        self._failing = False

    async def take(self) -> None:
        """Take one sample. If the cluster does not answer, take none, and log the first time."""
        if self._asking:
            return
        self._asking = True
        try:
            found = await self._ask()
        except RocketMQError as error:
            if not self._failing:
                self.log.warn("no metrics for the charts, retrying: {error}", error=error)
            self._failing = True
            return
        finally:
            self._asking = False
        self._failing = False
        self._samples.append(Sample(self._now_ms(), tuple(map(Values.of, found[:MOST_BROKERS]))))

    def since(self, time_ms: int) -> list[Sample]:
        """Return the samples from a time on, evenly thinned out if there are many; the newest is included."""
        found = [one for one in self._samples if one.time_ms >= time_ms]
        step = -(-len(found) // MOST_SHOWN) or 1
        return found[::-1][::step][::-1]
