"""Looking at messages, queues and statistics, and cleaning on demand."""

from __future__ import annotations

import pytest

from tests.support.broker import BrokerInMemory
from tests.support.heartbeat import heartbeat
from tests.twisted_mq.broker.processors.test_pull import pull, pull_fields, tagged
from tests.twisted_mq.broker.processors.test_send import send
from twisted_mq.broker.waiting_requests import WaitingKind
from twisted_mq.protocol.bodies import (
    BrokerStatsData,
    BrokerStatsItem,
    ConsumeQueueData,
    QueryConsumeQueueResponseBody,
    TopicStatsTable,
    decode_body,
)
from twisted_mq.protocol.codes import RequestCode, ResponseCode
from twisted_mq.protocol.layouts.record_codec import decode_message
from twisted_mq.protocol.remarks import OVERLOAD
from twisted_mq.protocol.wire.command import RemotingCommand


def test_a_message_is_viewed_by_its_offset() -> None:
    broker = BrokerInMemory()
    peer = broker.connect()
    send(peer, b"first")
    offset = broker.store.max_physical_offset()
    send(peer, b"second")
    answer = peer.ask(RequestCode.VIEW_MESSAGE_BY_ID, {"offset": str(offset), "topic": "T"})
    assert decode_message(answer.body).body == b"second"


@pytest.mark.parametrize("offset", [-1, 1, 1 << 40])
def test_no_message_begins_there(offset: int) -> None:
    broker = BrokerInMemory()
    send(broker.connect())
    answer = broker.connect().ask(RequestCode.VIEW_MESSAGE_BY_ID, {"offset": str(offset)})
    assert (answer.code, answer.remark) == (
        ResponseCode.SYSTEM_ERROR,
        f"can not find message by the offset, {offset}",
    )


def test_entries_of_a_queue() -> None:
    broker = BrokerInMemory()
    peer = broker.connect()
    send(peer)
    size = broker.store.max_physical_offset()
    tagged(peer, "A", b"x")
    fields = {"topic": "T", "queueId": "0", "index": "0", "count": "10"}
    body = decode_body(QueryConsumeQueueResponseBody, peer.ask(RequestCode.QUERY_CONSUME_QUEUE, fields).body)
    assert (body.min_queue_index, body.max_queue_index, body.subscription_data, body.filter_data) == (0, 2, None, None)
    assert body.queue_data == [
        ConsumeQueueData(0, size, 0),
        ConsumeQueueData(size, broker.store.max_physical_offset() - size, 65),
    ]
    heartbeat(broker.connect(), "G", "T")
    answer = peer.ask(RequestCode.QUERY_CONSUME_QUEUE, {**fields, "index": "1", "count": "1", "consumerGroup": "G"})
    body = decode_body(QueryConsumeQueueResponseBody, answer.body)
    assert body.subscription_data is not None and body.queue_data is not None
    assert (body.subscription_data.topic, len(body.queue_data), body.filter_data) == ("T", 1, "null")
    answer = peer.ask(RequestCode.QUERY_CONSUME_QUEUE, {**fields, "consumerGroup": "X"})
    assert decode_body(QueryConsumeQueueResponseBody, answer.body).filter_data == "X@T is not online!"


def test_entries_of_what_is_not_there() -> None:
    broker = BrokerInMemory()
    peer = broker.connect()
    send(peer)
    fields = {"topic": "T", "queueId": "9", "index": "0", "count": "1"}
    answer = peer.ask(RequestCode.QUERY_CONSUME_QUEUE, fields)
    assert (answer.code, answer.remark) == (ResponseCode.SYSTEM_ERROR, "9@T is not exist!")
    answer = peer.ask(RequestCode.QUERY_CONSUME_QUEUE, {**fields, "queueId": "0", "index": "5"})
    assert (answer.code, answer.remark, answer.body) == (0, "Index 5 of 0@T is not exist!", b"")
    answer = peer.ask(RequestCode.QUERY_CONSUME_QUEUE, {**fields, "queueId": "0", "count": "-5"})
    assert decode_body(QueryConsumeQueueResponseBody, answer.body).queue_data == []


def test_statistics_of_a_topic_over_a_minute() -> None:
    broker = BrokerInMemory()
    peer = broker.connect()
    for _ in range(4):
        send(peer)
    broker.clock.advance(10)
    broker.controller.take_sample(broker.clock.seconds())
    fields = {"statsName": "TOPIC_PUT_NUMS", "statsKey": "T"}
    body = decode_body(BrokerStatsData, peer.ask(RequestCode.VIEW_BROKER_STATS_DATA, fields).body)
    empty = BrokerStatsItem()
    assert body == BrokerStatsData(BrokerStatsItem(sum=4, tps=0.4, avgpt=1.0), empty, empty)
    table = decode_body(TopicStatsTable, peer.ask(RequestCode.GET_TOPIC_STATS_INFO, {"topic": "T"}).body)
    assert table.topic_put_tps == 0.4


def test_statistics_that_are_not_counted() -> None:
    fields = {"statsName": "TOPIC_PUT_NUMS", "statsKey": "nosuch"}
    answer = BrokerInMemory().connect().ask(RequestCode.VIEW_BROKER_STATS_DATA, fields)
    assert (answer.code, answer.remark) == (
        ResponseCode.SYSTEM_ERROR,
        "The stats <TOPIC_PUT_NUMS> <nosuch> not exist",
    )


def test_a_deleted_topic_has_no_statistics() -> None:
    broker = BrokerInMemory()
    peer = broker.connect()
    send(peer)
    peer.ask(RequestCode.DELETE_TOPIC_IN_BROKER, {"topic": "T"})
    assert set(broker.controller.statistics.puts) == {""}
    assert broker.controller.statistics.put_messages == 1


def test_queues_of_topics_that_are_gone_are_cleaned() -> None:
    broker = BrokerInMemory()
    peer = broker.connect()
    send(peer, topic="kept")
    send(peer, topic="gone")
    del broker.controller.topics.topics["gone"]
    assert peer.ask(RequestCode.CLEAN_UNUSED_TOPIC).code == 0
    assert broker.store.topics() == ["kept"]
    assert peer.ask(RequestCode.CLEAN_EXPIRED_CONSUMEQUEUE).code == 0
    assert peer.ask(RequestCode.DELETE_EXPIRED_COMMITLOG).code == 0
    assert broker.store.topics() == ["kept"]


def test_pulls_that_wait_are_bounded() -> None:
    broker = BrokerInMemory(pull_thread_pool_queue_capacity=1)
    peer = broker.connect()
    send(peer)
    held = broker.connect()
    for expected in (0, 1):
        held.send(RemotingCommand(11, language="JAVA", ext_fields=pull_fields(offset=1, sys_flag=6)))
        assert [(one.code, one.remark) for one in held.received()] == [(ResponseCode.SYSTEM_BUSY, OVERLOAD)] * expected
    broker.clock.advance(20)
    broker.controller.polling.answer_expired(broker.now_ms())
    assert (len(held.received()), broker.controller.polling.count(WaitingKind.PULL)) == (1, 0)
    assert pull(peer).code == 0
