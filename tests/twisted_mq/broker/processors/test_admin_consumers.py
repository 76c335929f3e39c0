"""Progress of groups in consumerProgress and brokerConsumeStats."""

from __future__ import annotations

from tests.support.broker import BrokerInMemory, Peer
from tests.support.heartbeat import heartbeat
from tests.twisted_mq.broker.processors.test_pull import pull
from tests.twisted_mq.broker.processors.test_send import send
from twisted_mq.protocol.bodies import (
    ConsumeStats,
    ConsumeStatsList,
    MessageQueue,
    OffsetWrapper,
    QueryConsumeTimeSpanBody,
    QuerySubscriptionResponseBody,
    TopicList,
    decode_body,
)
from twisted_mq.protocol.codes import RequestCode, ResponseCode


def consumed_broker() -> tuple[BrokerInMemory, Peer]:
    """Five messages in queue 0, stored a second apart; group G was handed all and committed three."""
    broker = BrokerInMemory()
    peer = broker.connect()
    for _ in range(5):
        send(peer)
        broker.clock.advance(1)
    pull(peer)
    broker.controller.offsets.commit("G", "T", 0, 3)
    broker.clock.advance(10)
    broker.controller.take_sample(broker.clock.seconds())
    return broker, peer


def queue(queue_id: int) -> MessageQueue:
    return MessageQueue(topic="T", broker_name="broker-cap", queue_id=queue_id)


def stats(peer: Peer, **fields: str) -> ConsumeStats:
    answer = peer.ask(RequestCode.GET_CONSUME_STATS, {"consumerGroup": "G", **fields})
    assert answer.code == 0
    return decode_body(ConsumeStats, answer.body)


def test_stats_show_lag_and_what_is_in_flight() -> None:
    broker, peer = consumed_broker()
    third_ms = broker.now_ms() - 13_000
    found = stats(peer)
    assert found.offset_table == {
        queue(0): OffsetWrapper(broker_offset=5, consumer_offset=3, pull_offset=5, last_timestamp=third_ms),
        **{queue(one): OffsetWrapper() for one in (1, 2, 3)},
    }
    assert found.consume_tps == 5 / 15


def test_stats_of_named_topics_skip_the_subscription_check() -> None:
    broker, peer = consumed_broker()
    heartbeat(broker.connect(), "G", "other")
    assert stats(peer).offset_table == {}
    assert stats(peer, topic="T").offset_table == {}
    assert len(stats(peer, topicList="nosuch;T;").offset_table) == 4


def test_stats_of_an_unknown_group_or_topic_are_empty() -> None:
    _, peer = consumed_broker()
    assert stats(peer, consumerGroup="nobody") == ConsumeStats()
    assert stats(peer, topic="nosuch") == ConsumeStats()


def test_all_groups_with_their_sums() -> None:
    """A topic that is gone is left out, whatever its place among the others."""
    broker, peer = consumed_broker()
    for gone in ("A", "Z"):
        broker.controller.offsets.commit("G", gone, 0, 1)
    answer = peer.ask(RequestCode.GET_BROKER_CONSUME_STATS, {"isOrder": "false"})
    body = decode_body(ConsumeStatsList, answer.body)
    assert (body.broker_addr, body.total_diff, body.total_inflight_diff) == ("127.0.0.2:20911", 2, 2)
    by_group = {group: listed for one in body.consume_stats_list for group, listed in one.items()}
    assert (len(by_group["G"]), by_group["TOOLS_CONSUMER"]) == (1, [])
    ordered = decode_body(ConsumeStatsList, peer.ask(RequestCode.GET_BROKER_CONSUME_STATS, {"isOrder": "true"}).body)
    assert ordered.total_diff == 0


def test_time_span_of_each_queue() -> None:
    broker, peer = consumed_broker()
    first_ms = broker.now_ms() - 15_000
    answer = peer.ask(RequestCode.QUERY_CONSUME_TIME_SPAN, {"topic": "T", "group": "G"})
    first, second, *_ = decode_body(QueryConsumeTimeSpanBody, answer.body).consume_time_span_set
    assert (first.min_time_stamp, first.max_time_stamp) == (first_ms, first_ms + 4000)
    assert (first.consume_time_stamp, first.delay_time) == (first_ms + 2000, 12_000)
    assert (second.message_queue, second.min_time_stamp, second.consume_time_stamp) == (queue(1), -1, -1)


def test_time_span_needs_a_topic_that_exists() -> None:
    answer = BrokerInMemory().connect().ask(RequestCode.QUERY_CONSUME_TIME_SPAN, {"topic": "X", "group": "G"})
    assert (answer.code, answer.remark) == (ResponseCode.TOPIC_NOT_EXIST, "topic[X] not exist")


def test_topics_and_subscription_of_a_group() -> None:
    broker, peer = consumed_broker()
    answer = peer.ask(RequestCode.QUERY_TOPICS_BY_CONSUMER, {"group": "G"})
    assert decode_body(TopicList, answer.body) == TopicList(topic_list=["T"], broker_addr="127.0.0.2:20911")
    heartbeat(broker.connect(), "G", "T")
    fields = {"group": "G", "topic": "T"}
    body = decode_body(QuerySubscriptionResponseBody, peer.ask(RequestCode.QUERY_SUBSCRIPTION_BY_CONSUMER, fields).body)
    assert body.subscription_data is not None
    assert (body.group, body.topic, body.subscription_data.sub_string) == ("G", "T", "*")
    fields = {"group": "X", "topic": "T"}
    body = decode_body(QuerySubscriptionResponseBody, peer.ask(RequestCode.QUERY_SUBSCRIPTION_BY_CONSUMER, fields).body)
    assert body.subscription_data is None
