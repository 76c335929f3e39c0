"""Broker of the next attempt."""

from __future__ import annotations

import pytest

from twisted_mq.client.producing.latency_fault import LatencyFault, penalty_ms
from twisted_mq.protocol.names.topic_route import TopicPublishInfo, queues_of


def info(*brokers: str) -> TopicPublishInfo:
    return TopicPublishInfo("T", tuple(queue for name in brokers for queue in queues_of("T", name, 2)))


def picks(fault: LatencyFault, publish: TopicPublishInfo, last: str | None, now_ms: int, times: int = 8) -> set[str]:
    chosen = [fault.select(publish, last, now_ms) for _ in range(times)]
    return {queue.broker_name for queue in chosen if queue is not None}


@pytest.mark.parametrize(
    ("latency", "left_out"),
    [(0, 0), (549, 0), (550, 2000), (999, 2000), (1000, 5000), (2000, 6000), (3000, 10000), (15000, 30000)],
)
def test_penalty_grows_with_latency_as_in_apache(latency: int, left_out: int) -> None:
    assert penalty_ms(latency) == left_out


def test_broker_of_the_last_attempt_is_avoided() -> None:
    assert picks(LatencyFault(), info("a", "b", "c"), "b", 0) == {"a", "c"}


def test_only_broker_is_tried_again() -> None:
    assert picks(LatencyFault(), info("a"), "a", 0) == {"a"}


def test_without_isolation_nothing_is_remembered() -> None:
    fault = LatencyFault()
    fault.record("a", 20_000, 0, failed=True)
    assert picks(fault, info("a", "b"), None, 1) == {"a", "b"}


def test_slow_broker_is_left_out_for_its_time() -> None:
    fault = LatencyFault(enabled=True)
    fault.record("a", 1_200, 0)
    assert picks(fault, info("a", "b"), None, 4_999) == {"b"}
    assert picks(fault, info("a", "b"), None, 5_000) == {"a", "b"}


def test_failed_broker_counts_as_ten_seconds() -> None:
    fault = LatencyFault(enabled=True)
    fault.record("a", 1, 0, failed=True)
    assert (fault.is_available("a", 9_999), fault.is_available("a", 10_000)) == (False, True)


def test_with_all_left_out_a_reachable_one_is_taken() -> None:
    fault = LatencyFault(enabled=True)
    fault.record("a", 1, 0, failed=True)
    fault.record("b", 20_000, 0)
    assert picks(fault, info("a", "b"), None, 1) == {"b"}


def test_with_none_reachable_any_is_taken() -> None:
    fault = LatencyFault(enabled=True)
    fault.record("a", 1, 0, failed=True)
    assert picks(fault, info("a"), "a", 1) == {"a"}
    assert fault.select(TopicPublishInfo("T", ()), None, 0) is None
