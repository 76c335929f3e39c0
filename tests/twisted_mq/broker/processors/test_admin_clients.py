"""Connected clients, and requests that are handed on to consumers."""

from __future__ import annotations

import pytest

from tests.support.broker import BrokerInMemory
from tests.support.heartbeat import heartbeat
from tests.twisted_mq.broker.processors.test_send import send
from twisted_mq.protocol.bodies import (
    BrokerStatsData,
    Connection,
    ConsumerConnection,
    ProducerConnection,
    ProducerInfo,
    ProducerTableInfo,
    decode_body,
)
from twisted_mq.protocol.codes import RequestCode, ResponseCode
from twisted_mq.protocol.layouts.record_codec import decode_message
from twisted_mq.protocol.wire.command import RemotingCommand

PEER = "127.0.0.1:52174"


def test_consumer_connections_show_clients_and_subscriptions() -> None:
    broker = BrokerInMemory()
    heartbeat(broker.connect(), "C", "T", "U", client_id="one")
    answer = broker.connect().ask(RequestCode.GET_CONSUMER_CONNECTION_LIST, {"consumerGroup": "C"})
    body = decode_body(ConsumerConnection, answer.body)
    assert body.connection_set == [Connection("one", PEER, "JAVA", 479)]
    assert sorted(body.subscription_table) == ["T", "U"]
    assert (body.consume_type, body.message_model, body.consume_from_where) == (
        "CONSUME_PASSIVELY",
        "CLUSTERING",
        "CONSUME_FROM_LAST_OFFSET",
    )


def test_members_that_disagree_are_named_and_counted() -> None:
    broker = BrokerInMemory()
    one, other = broker.connect(), broker.connect()
    heartbeat(one, "C", "T", client_id="one")
    heartbeat(other, "C", "T", "U", client_id="other")
    admin = broker.connect()
    answer = admin.ask(RequestCode.GET_CONSUMER_CONNECTION_LIST, {"consumerGroup": "C"})
    assert (answer.code, answer.remark) == (0, "subscription conflict, topic U: (nothing) by one, * by other")
    assert len(decode_body(ConsumerConnection, answer.body).connection_set) == 2
    broker.clock.advance(10)
    broker.controller.take_sample(broker.clock.seconds())
    fields = {"statsName": "SUBSCRIPTION_CONFLICT_NUMS", "statsKey": "U@C"}
    stats = decode_body(BrokerStatsData, admin.ask(RequestCode.VIEW_BROKER_STATS_DATA, fields).body)
    assert stats.stats_minute is not None and stats.stats_minute.sum == 1
    other.channel.connectionLost()
    assert admin.ask(RequestCode.GET_CONSUMER_CONNECTION_LIST, {"consumerGroup": "C"}).remark is None


def test_producer_connections_and_the_table_of_all() -> None:
    broker = BrokerInMemory()
    heartbeat(broker.connect(), "", client_id="one", producer="P")
    peer = broker.connect()
    answer = peer.ask(RequestCode.GET_PRODUCER_CONNECTION_LIST, {"producerGroup": "P"})
    assert decode_body(ProducerConnection, answer.body).connection_set == [Connection("one", PEER, "JAVA", 479)]
    table = decode_body(ProducerTableInfo, peer.ask(RequestCode.GET_ALL_PRODUCER_INFO).body).data
    assert table == {"P": [ProducerInfo("one", f"/{PEER}", "JAVA", 479, broker.now_ms())]}


@pytest.mark.parametrize(
    ("code", "fields", "expected", "remark"),
    [
        (203, {"consumerGroup": "X"}, ResponseCode.CONSUMER_NOT_ONLINE, "the consumer group[X] not online"),
        (204, {"producerGroup": "X"}, ResponseCode.SYSTEM_ERROR, "the producer group[X] not exist"),
        (307, {"consumerGroup": "X", "clientId": "c"}, ResponseCode.SYSTEM_ERROR, "The Consumer <X> <c> not online"),
        (309, {"consumerGroup": "X", "clientId": "c"}, ResponseCode.SYSTEM_ERROR, "The Consumer <X> <c> not online"),
        (
            223,
            {"topic": "T", "group": "X"},
            ResponseCode.SYSTEM_ERROR,
            "No Any Consumer online in the consumer group: [X]",
        ),
    ],
)
def test_who_is_not_there_is_named(code: int, fields: dict[str, str], expected: int, remark: str) -> None:
    answer = BrokerInMemory().connect().ask(code, fields)
    assert (answer.code, answer.remark) == (expected, remark)


def test_running_info_is_asked_of_the_consumer() -> None:
    broker = BrokerInMemory()
    consumer, peer = broker.connect(), broker.connect()
    heartbeat(consumer, "C", "T", client_id="one")
    fields = {"consumerGroup": "C", "clientId": "one", "jstackEnable": "true"}
    request = peer.send(RemotingCommand(RequestCode.GET_CONSUMER_RUNNING_INFO, language="JAVA", ext_fields=fields))
    (asked,) = consumer.received()
    assert (asked.code, asked.ext_fields) == (307, fields)
    consumer.send(asked.answer(body=b'{"jstack":"x"}'))
    (answer,) = peer.received()
    assert (answer.code, answer.body, answer.opaque) == (0, b'{"jstack":"x"}', request.opaque)


def test_requests_to_one_consumer_are_bounded() -> None:
    """A consumer that asks for its own figures, and answers nothing, would make the turn long in which it goes."""
    broker = BrokerInMemory()
    consumer = broker.connect()
    heartbeat(consumer, "C", "T", client_id="one")
    fields = {"consumerGroup": "C", "clientId": "one"}
    most = broker.traffic.max_awaited
    for _ in range(most):
        consumer.send(RemotingCommand(RequestCode.GET_CONSUMER_RUNNING_INFO, language="JAVA", ext_fields=fields))
    assert (len(consumer.received()), most) == (most, 1000)
    answer = consumer.ask(RequestCode.GET_CONSUMER_RUNNING_INFO, fields)
    assert (answer.code, answer.remark) == (
        ResponseCode.SYSTEM_ERROR,
        f"invoke consumer <C> <one> Exception: {most} requests to {PEER} wait for an answer",
    )


def test_a_consumer_that_does_not_answer_is_a_timeout() -> None:
    broker = BrokerInMemory()
    consumer, peer = broker.connect(), broker.connect()
    heartbeat(consumer, "C", "T", client_id="one")
    fields = {"consumerGroup": "C", "clientId": "one"}
    peer.send(RemotingCommand(RequestCode.GET_CONSUMER_RUNNING_INFO, language="JAVA", ext_fields=fields))
    broker.clock.advance(10)
    (answer,) = peer.received()
    assert (answer.code, answer.remark) == (
        ResponseCode.CONSUME_MSG_TIMEOUT,
        f"consumer <C> <one> Timeout: no answer from {PEER} within 10 s",
    )


def test_consuming_directly_hands_the_stored_message_to_the_consumer() -> None:
    broker = BrokerInMemory()
    consumer, peer = broker.connect(), broker.connect()
    heartbeat(consumer, "C", "T", client_id="one")
    message_id = send(peer, b"again").ext_fields["msgId"]
    fields = {"consumerGroup": "C", "clientId": "one", "msgId": message_id, "topic": "T"}
    peer.send(RemotingCommand(RequestCode.CONSUME_MESSAGE_DIRECTLY, language="JAVA", ext_fields=fields))
    (asked,) = consumer.received()
    own = {"brokerName": "broker-cap", "topicSysFlag": "0", "groupSysFlag": "0"}
    assert (asked.ext_fields, decode_message(asked.body).body) == ({**fields, **own}, b"again")
    consumer.send(asked.answer(body=b'{"consumeResult":"CR_SUCCESS"}'))
    assert peer.received()[0].body == b'{"consumeResult":"CR_SUCCESS"}'


@pytest.mark.parametrize("code", [RequestCode.CONSUME_MESSAGE_DIRECTLY, RequestCode.GET_CONSUMER_RUNNING_INFO])
def test_nothing_is_handed_on_to_a_consumer_that_takes_nothing(code: int) -> None:
    """Small requests would make the broker keep whole messages for it, as many as there are requests."""
    broker = BrokerInMemory()
    consumer, peer = broker.connect(), broker.connect()
    heartbeat(consumer, "C", "T", client_id="one")
    message_id = send(peer, bytes(100_000)).ext_fields["msgId"]
    consumer.received()
    consumer.channel.pauseProducing()
    fields = {"consumerGroup": "C", "clientId": "one", "msgId": message_id, "topic": "T"}
    answers = [peer.ask(code, fields) for _ in range(3)]
    assert [answer.code for answer in answers] == [ResponseCode.SYSTEM_ERROR] * 3
    assert "has not read" in str(answers[0].remark)
    assert (consumer.received(), broker.traffic.budget.unsent_bytes) == ([], 0)


@pytest.mark.parametrize("message_id", ["", "nonsense", "7F000002000051AF00000000000FFFFF"])
def test_consuming_a_message_that_is_not_there(message_id: str) -> None:
    broker = BrokerInMemory()
    consumer = broker.connect()
    heartbeat(consumer, "C", "T", client_id="one")
    fields = {"consumerGroup": "C", "clientId": "one", "msgId": message_id}
    assert broker.connect().ask(RequestCode.CONSUME_MESSAGE_DIRECTLY, fields).code == ResponseCode.SYSTEM_ERROR
    assert consumer.received() == []
