"""Reports made by hand, for what shows them."""

from __future__ import annotations

from tests.spark.stores import BORN_MS
from twisted_mq.spark.jobs.latency import STEPS_MS
from twisted_mq.spark.jobs.topics import topic_kind
from twisted_mq.spark.report.report_data import INTERVALS, QueueFigures, StoreReport, TopicFigures
from twisted_mq.spark.source.log_stretch import Damage


def queue(topic: str, queue_id: int = 0, messages: int = 10, **counts: int) -> QueueFigures:
    return QueueFigures(
        topic, queue_id, messages, 200 * messages, 0, messages - 1, BORN_MS, BORN_MS + 60_000, 0, **counts
    )


def topic(name: str, queues: int = 1, messages: int = 10, **counts: int) -> TopicFigures:
    rows = tuple(queue(name, queue_id, messages) for queue_id in range(queues))
    return TopicFigures(name, topic_kind(name), rows, 1, 20, 1500, **counts)


def report(*topics: TopicFigures, damage: tuple[Damage, ...] = ()) -> StoreReport:
    steps = (0, 5, 5) + (0,) * (len(STEPS_MS) - 2)
    return StoreReport("/data/store", 2, 2048, topics, damage, steps, (1,) * INTERVALS)


EMPTY = StoreReport("/data/empty", 0, 0, (), (), (0,) * (len(STEPS_MS) + 1))
