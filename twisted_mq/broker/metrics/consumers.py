"""Makes the metrics for which rocketmq-exporter asks consumers, from the last turn of `ConsumerFigures`."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from twisted_mq.broker.metrics.scrape import Scrape
from twisted_mq.metrics.family import Family, Row

OF_CLIENT = ("clientAddr", "clientId", "group", "topic")


def _told(rate: str) -> Callable[[Scrape], Iterator[Row]]:
    return lambda scrape: ((labels, getattr(status, rate)) for labels, status in scrape.told_by_consumers)


FAMILIES: tuple[Family[Scrape], ...] = tuple(
    Family(f"rocketmq_client_{name}", "gauge", help, OF_CLIENT, _told(rate))
    for name, rate, help in (
        ("consume_fail_msg_count", "consume_failed_msgs", "Messages that a consumer failed on in the last hour"),
        ("consume_fail_msg_tps", "consume_failed_tps", "Messages per second that a consumer fails on"),
        ("consume_ok_msg_tps", "consume_ok_tps", "Messages per second that a consumer consumes"),
        ("consume_rt", "consume_rt", "Time that a consumer needs for messages, in ms"),
        ("consumer_pull_rt", "pull_rt", "Time of a pull of a consumer, in ms"),
        ("consumer_pull_tps", "pull_tps", "Messages per second that a consumer pulls"),
    )
)
