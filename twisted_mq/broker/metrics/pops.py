"""Makes the metrics of pops (Apache: PopMetricsManager). There are no buffers here: both are empty, and none is scanned."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from twisted_mq.broker.metrics.scrape import Scrape
from twisted_mq.broker.pop.revive_queue import ACKNOWLEDGEMENT, CHECK_POINT, ReviveQueue
from twisted_mq.metrics.family import Family, Row, one
from twisted_mq.storage.interfaces import PutStatus


def _revive_in(scrape: Scrape) -> Iterator[Row]:
    """Return what was written to the revive log; the keys are topic@group."""
    statistics = scrape.broker.statistics
    for kind, counters in ((CHECK_POINT, statistics.checkpoints), (ACKNOWLEDGEMENT, statistics.acks)):
        for key, counter in list(counters.items()):
            topic, at, group = key.partition("@")
            if at:
                yield (group, topic, kind, PutStatus.PUT_OK.name), counter.times


def _revive_out(scrape: Scrape) -> Iterator[Row]:
    for (group, topic, queue_id, kind), count in list(scrape.broker.statistics.revive_reads.items()):
        yield (group, topic, str(queue_id), kind), count


def _revived(scrape: Scrape) -> Iterator[Row]:
    return iter(list(scrape.broker.statistics.revived.items()))


def _of_queues(value: Callable[[ReviveQueue], int]) -> Callable[[Scrape], Iterator[Row]]:
    return lambda scrape: (((str(queue.queue_id),), value(queue)) for queue in scrape.broker.pop.revive_queues)


FAMILIES: tuple[Family[Scrape], ...] = (
    Family(
        "rocketmq_pop_revive_in_message_total", "counter", "Messages written to the revive log",
        ("consumer_group", "topic", "revive_message_type", "put_status"), _revive_in,
    ),
    Family(
        "rocketmq_pop_revive_out_message_total", "counter", "Messages read from the revive log",
        ("consumer_group", "topic", "queue_id", "revive_message_type"), _revive_out,
    ),
    Family(
        "rocketmq_pop_revive_retry_messages_total", "counter", "Messages written to retry topics of pops",
        ("consumer_group", "topic", "put_status"), _revived,
    ),
    Family(
        "rocketmq_pop_revive_lag", "gauge", "Messages of the revive log that are not read yet", ("queue_id",),
        _of_queues(lambda queue: queue.messages_behind), "milliseconds",
    ),
    Family(
        "rocketmq_pop_revive_latency", "gauge", "Age of the first of them, in ms", ("queue_id",),
        _of_queues(lambda queue: queue.ms_behind), "milliseconds",
    ),
    Family("rocketmq_pop_offset_buffer_size", "gauge", "Buffered offsets", (), lambda _: one(0)),
    Family("rocketmq_pop_checkpoint_buffer_size", "gauge", "Buffered check points", (), lambda _: one(0)),
)  # fmt: skip
