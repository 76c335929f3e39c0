"""Bodies of requests: long ones are read in a thread, one after the other, those past the bounds not at all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from twisted.internet import defer

from tests.support.broker import BrokerInMemory, Peer
from twisted_mq.broker.request_bodies import MOST_BODY_BYTES, READ_AT_ONCE
from twisted_mq.protocol.bodies import (
    HeartbeatData,
    LockBatchRequestBody,
    MessageQueue,
    ProducerData,
    SubscriptionGroupConfig,
    SubscriptionGroupList,
    TopicConfig,
    encode_body,
)
from twisted_mq.protocol.codes import RequestCode, ResponseCode
from twisted_mq.protocol.wire.command import ONE_WAY_FLAG, RemotingCommand

MANY = 4000


class Desk:
    """A broker whose threads run when `run` says so."""

    def __init__(self) -> None:
        self.threads: list[Callable[[], None]] = []
        self.broker = BrokerInMemory(parts={"in_thread": self._in_thread})
        self.broker.controller.topics.update(
            [TopicConfig(topic_name="T", read_queue_nums=MANY, write_queue_nums=MANY, perm=6)]
        )

    def _in_thread(self, function: Callable[..., Any], *arguments: Any) -> defer.Deferred[Any]:
        done: defer.Deferred[Any] = defer.Deferred()
        self.threads.append(lambda: defer.execute(function, *arguments).chainDeferred(done))
        return done

    def run(self) -> None:
        self.threads.pop(0)()
        self.broker.clock.advance(0)


def send(peer: Peer, code: int, body: bytes) -> None:
    peer.send(RemotingCommand(code, language="JAVA", body=body))


def heartbeat(producers: int) -> bytes:
    return encode_body(HeartbeatData("c", [ProducerData(f"group-{number:06}") for number in range(producers)]))


LONG = [
    pytest.param(RequestCode.HEART_BEAT, heartbeat(MANY), id="heartbeat"),
    pytest.param(
        RequestCode.LOCK_BATCH_MQ,
        encode_body(
            LockBatchRequestBody(
                consumer_group="G", client_id="c", mq_set=[MessageQueue("T", "b", one) for one in range(MANY)]
            )
        ),
        id="lock",
    ),
    pytest.param(
        RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST,
        encode_body(SubscriptionGroupList([SubscriptionGroupConfig(f"g{number}") for number in range(500)])),
        id="groups",
    ),
]


@pytest.mark.parametrize(("code", "body"), LONG)
def test_a_long_body_is_read_in_a_thread_while_others_are_served(code: int, body: bytes) -> None:
    desk = Desk()
    peer, other = desk.broker.connect(), desk.broker.connect()
    send(peer, code, body)
    assert (len(body) > READ_AT_ONCE, len(desk.threads), peer.received()) == (True, 1, [])
    assert other.ask(RequestCode.HEART_BEAT, body=heartbeat(1)).code == 0
    desk.run()
    (answer,) = peer.received()
    assert (answer.code, answer.opaque) == (0, 1)


def test_one_long_body_is_read_after_the_other() -> None:
    desk = Desk()
    first, second = desk.broker.connect(), desk.broker.connect()
    for peer in (first, second):
        send(peer, RequestCode.HEART_BEAT, heartbeat(MANY))
    assert len(desk.threads) == 1
    desk.run()
    assert (len(first.received()), second.received(), len(desk.threads)) == (1, [], 1)
    desk.run()
    assert len(second.received()) == 1


def test_a_long_body_that_cannot_be_read_is_refused() -> None:
    desk = Desk()
    peer = desk.broker.connect()
    send(peer, RequestCode.HEART_BEAT, heartbeat(MANY)[:-1])
    desk.run()
    (answer,) = peer.received()
    assert (answer.code, "HeartbeatData: no JSON" in answer.remark) == (ResponseCode.SYSTEM_ERROR, True)


@pytest.mark.parametrize(
    ("code", "most"),
    [
        (RequestCode.HEART_BEAT, MOST_BODY_BYTES),
        (RequestCode.UPDATE_AND_CREATE_TOPIC_LIST, MOST_BODY_BYTES),
        (RequestCode.UNLOCK_BATCH_MQ, MOST_BODY_BYTES),
        (RequestCode.BATCH_ACK_MESSAGE, MOST_BODY_BYTES),
        (RequestCode.CHECK_CLIENT_CONFIG, READ_AT_ONCE),
        (RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, READ_AT_ONCE),
        (RequestCode.QUERY_ASSIGNMENT, READ_AT_ONCE),
        (RequestCode.SET_MESSAGE_REQUEST_MODE, READ_AT_ONCE),
    ],
)
def test_a_body_past_its_bound_is_not_read(code: int, most: int) -> None:
    desk = Desk()
    answer = desk.broker.connect().ask(code, body=b"[" * (most + 1))
    remark = f"body: {most + 1} bytes, the limit for a request with code {int(code)} is {most}"
    assert (answer.code, answer.remark, desk.threads) == (ResponseCode.INVALID_PARAMETER, remark, [])


def test_bodies_that_wait_to_be_read_are_bounded() -> None:
    desk = Desk()
    peers = [desk.broker.connect() for _ in range(9)]
    for peer in peers:
        send(peer, RequestCode.HEART_BEAT, b"[" * MOST_BODY_BYTES)
    busy = [[answer.code for answer in peer.received()] for peer in peers]
    assert busy == [[]] * 8 + [[ResponseCode.SYSTEM_BUSY]]


@pytest.mark.parametrize(("flag", "read"), [(0, 0), (ONE_WAY_FLAG, 1)], ids=["with an answer", "one-way"])
def test_a_long_body_that_waits_is_not_read_once_its_connection_is_closed(flag: int, read: int) -> None:
    desk = Desk()
    first, gone = desk.broker.connect(), desk.broker.connect()
    send(first, RequestCode.HEART_BEAT, heartbeat(MANY))
    body = encode_body(SubscriptionGroupList([SubscriptionGroupConfig(f"g{number}") for number in range(500)]))
    gone.send(RemotingCommand(RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST, flag=flag, body=body))
    gone.channel.connectionLost()
    desk.run()
    assert (len(first.received()), len(desk.threads)) == (1, read)
