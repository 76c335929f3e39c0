"""Makes the timer's metrics (Apache: DefaultStoreMetricsManager); none if it does not run, as on a slave.

rocketmq_timer_enqueue_latency is how long the first message has waited that is not on the wheel. Apache's is the age of
the last message that was put on the wheel.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping

from twisted_mq.broker.metrics.builtin import LOCAL_DISK, STORAGE
from twisted_mq.broker.metrics.lag import age
from twisted_mq.broker.metrics.scrape import Scrape
from twisted_mq.broker.schedule.timer_service import TimerService
from twisted_mq.metrics.family import Family, Row, Spread
from twisted_mq.protocol.names.system_topics import TIMER_TOPIC

OF_TOPIC = (*STORAGE, "topic")
BOUNDS_SECONDS = (5, 60, 300, 900, 3600, 14_400, 28_800, 86_400)
"""Limits in seconds (Apache: TimerMetrics.timerDist). Each range begins at the limit before it."""
Rows = Callable[[Scrape], Iterator[Row]]


def _timer(scrape: Scrape) -> Iterator[TimerService]:
    waiting = scrape.broker.waiting
    if waiting.times:
        yield waiting.timer


def _one(value: Callable[[Scrape, TimerService], int]) -> Rows:
    return lambda scrape: ((LOCAL_DISK, value(scrape, timer)) for timer in _timer(scrape))


def _by_topic(values: Callable[[TimerService], Mapping[str, float | Spread]]) -> Rows:
    def rows(scrape: Scrape) -> Iterator[Row]:
        for timer in _timer(scrape):
            for topic, value in list(values(timer).items()):
                yield (*LOCAL_DISK, topic), value

    return rows


def _not_noted(scrape: Scrape, timer: TimerService) -> int:
    return max(0, scrape.broker.store.max_offset_in_queue(TIMER_TOPIC, 0) - timer.queue_offset)


def _first_waits(scrape: Scrape, timer: TimerService) -> int:
    stored_ms = scrape.broker.store.store_timestamp(TIMER_TOPIC, 0, timer.queue_offset)
    return age(stored_ms, scrape.now_ms) if _not_noted(scrape, timer) and stored_ms > 0 else 0


def _late(scrape: Scrape, timer: TimerService) -> int:
    return max(0, scrape.timers_ms - timer.read_ms) if timer.read_ms else 0


def _waiting(timer: TimerService) -> Counter[str]:
    return Counter({topic: metric.count for topic, metric in timer.files.metrics.counts.items()})


def _spread(scrape: Scrape) -> Iterator[Row]:
    for timer in _timer(scrape):
        start = 0
        for bound in BOUNDS_SECONDS:
            first, end = (scrape.timers_ms + seconds * 1000 for seconds in (start, bound))
            yield (*LOCAL_DISK, str(bound)), timer.files.count_between(first, end)
            start = bound


def _gauge(name: str, help: str, labels: tuple[str, ...], rows: Rows, unit: str = "") -> Family[Scrape]:
    return Family(f"rocketmq_{name}", "gauge", help, labels, rows, unit)


FAMILIES: tuple[Family[Scrape], ...] = (
    _gauge("timer_enqueue_lag", "Timer messages not on the wheel yet", STORAGE, _one(_not_noted)),
    _gauge("timer_enqueue_latency", "Waiting time of the first of them, in ms", STORAGE, _one(_first_waits), "milliseconds"),
    _gauge("timer_dequeue_lag", "Messages on the wheel", STORAGE, _one(lambda _, timer: _waiting(timer).total())),
    _gauge("timer_dequeue_latency", "Delay of the timer, in ms", STORAGE, _one(_late), "milliseconds"),
    _gauge("timing_messages", "Messages that wait for their time", OF_TOPIC, _by_topic(_waiting)),
    _gauge("timer_message_snapshot", "Messages due between two bounds", (*STORAGE, "timer_bound_s"), _spread),
    Family(
        "rocketmq_timer_enqueue_total", "counter", "Messages that came to the timer", OF_TOPIC,
        _by_topic(lambda timer: timer.counts.noted),
    ),
    Family(
        "rocketmq_timer_dequeue_total", "counter", "Messages that left the wheel", OF_TOPIC,
        _by_topic(lambda timer: timer.counts.taken),
    ),
    Family(
        "rocketmq_delay_message_latency", "histogram", "From a timed message's birth to its time, in s", OF_TOPIC,
        _by_topic(lambda timer: timer.counts.delays), "seconds",
    ),
)  # fmt: skip
