"""Answers to what is appended beside sends: none leaves before the disk, and the slaves, have what it acknowledges."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import pytest

from tests.support.broker import BrokerInMemory, Peer
from tests.support.transactions import half_fields
from twisted_mq.config.connection_options import ConnectionOptions
from twisted_mq.protocol.bodies import HeartbeatData, ProducerData, encode_body
from twisted_mq.protocol.codes import RequestCode, ResponseCode
from twisted_mq.protocol.layouts.record_codec import decode_message
from twisted_mq.protocol.names.recall_handle import RecallHandle
from twisted_mq.protocol.names.system_topics import CHECK_MAX_TIME_TOPIC, OP_TOPIC
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.remoting.budget import Budget
from twisted_mq.storage.interfaces import InnerMessage

COMMIT, ROLLBACK = "8", "12"
SYNC_FLUSH = {"flush_disk_type": "SYNC_FLUSH", "hold_flushes": True}
SYNC_MASTER = {"broker_role": "SYNC_MASTER", "in_sync_replicas": 2}


class Desk:
    """A broker with one client. `sent` are sends that wait, `settle` lets the disk or a slave take what was appended."""

    def __init__(self, root: Path, **options: Any) -> None:
        self.broker = BrokerInMemory(store_path_root_dir=str(root), recall_message_enable=True, **options)
        self.peer = self.broker.connect()

    def settle(self) -> list[RemotingCommand]:
        """The answers that this lets go."""
        self.broker.store.flush()
        self.broker.controller.ha.transfers.acknowledged([self.broker.store.max_physical_offset()])
        return self.peer.received()

    def send(self, fields: dict[str, str]) -> RemotingCommand:
        self.peer.send(RemotingCommand(RequestCode.SEND_MESSAGE_V2, body=b"x", ext_fields=fields))
        (answer,) = self.settle()
        return answer

    def half(self) -> dict[str, str]:
        """Begin a transaction, and return the fields of its end."""
        sent = self.send(half_fields("K", self.broker.now_ms()))
        return {
            "producerGroup": "PG", "commitLogOffset": str(int(sent.ext_fields["msgId"][16:], 16)), "msgId": "K",
            "tranStateTableOffset": sent.ext_fields["queueOffset"], "fromTransactionCheck": "false",
        }  # fmt: skip


def given_back(desk: Desk) -> RemotingCommand:
    fields = half_fields("K", desk.broker.now_ms()) | {"i": ""}
    desk.send(fields)
    return _request(RequestCode.CONSUMER_SEND_MSG_BACK, offset="0", group="G", delayLevel="1", originTopic="T")


def recalled(desk: Desk) -> RemotingCommand:
    desk.broker.controller.topics.create_for_group("T", 1)
    handle = RecallHandle("T", "broker-cap", str(desk.broker.now_ms() + 5000), "K").encode()
    return _request(RequestCode.RECALL_MESSAGE, topic="T", producerGroup="P", recallHandle=handle)


def committed(desk: Desk) -> RemotingCommand:
    return _request(RequestCode.END_TRANSACTION, **desk.half(), commitOrRollback=COMMIT)


def rolled_back(desk: Desk) -> RemotingCommand:
    return _request(RequestCode.END_TRANSACTION, **desk.half(), commitOrRollback=ROLLBACK)


def resumed(desk: Desk) -> RemotingCommand:
    store = desk.broker.store
    store.put_message(InnerMessage(CHECK_MAX_TIME_TOPIC, 0, b"x", b"REAL_TOPIC\x01T\x02", {"REAL_TOPIC": "T"}, 0))
    store.flush()
    return _request(RequestCode.RESUME_CHECK_HALF_MESSAGE, topic="T", msgId="7F000002000051AF0000000000000000")


def replied(desk: Desk) -> RemotingCommand:
    asking = desk.broker.connect()
    body = encode_body(HeartbeatData(client_id="asking", producer_data_set=[ProducerData(group_name="P")]))
    asking.ask(RequestCode.HEART_BEAT, body=body)
    fields = half_fields("K", desk.broker.now_ms()) | {
        "b": "CapCluster_REPLY_TOPIC", "e": "0", "i": "REPLY_TO_CLIENT\x01asking\x02",
    }  # fmt: skip
    desk.peer.send(RemotingCommand(RequestCode.SEND_REPLY_MESSAGE_V2, body=b"x", ext_fields=fields))
    (push,) = asking.received()
    asking.send(push.answer())
    return RemotingCommand(-1)


def _request(code: RequestCode, **fields: str) -> RemotingCommand:
    return RemotingCommand(code, ext_fields=fields)


@pytest.fixture(params=[SYNC_FLUSH, SYNC_MASTER], ids=["disk", "slave"])
def desk(request: pytest.FixtureRequest, tmp_path: Path) -> Desk:
    return Desk(tmp_path, **request.param)


appending = pytest.mark.parametrize("ask", [given_back, recalled, committed, rolled_back, resumed, replied])


def ask_it(desk: Desk, ask: Callable[[Desk], RemotingCommand]) -> Peer:
    request = ask(desk)
    if request.code >= 0:
        desk.peer.send(request)
    return desk.peer


@appending
def test_an_answer_waits_for_what_it_acknowledges(desk: Desk, ask: Callable[[Desk], RemotingCommand]) -> None:
    peer = ask_it(desk, ask)
    assert peer.received() == []
    (answer,) = desk.settle()
    assert (answer.code, answer.remark) == (0, None)


@appending
def test_what_slaves_do_not_take_in_time_is_no_success(tmp_path: Path, ask: Callable[[Desk], RemotingCommand]) -> None:
    desk = Desk(tmp_path, **SYNC_MASTER)
    peer = ask_it(desk, ask)
    desk.broker.clock.advance(3)
    (answer,) = peer.received()
    assert (answer.code, answer.remark) == (ResponseCode.FLUSH_SLAVE_TIMEOUT, "FLUSH_SLAVE_TIMEOUT")


@pytest.mark.parametrize("ask", [committed, rolled_back])
def test_the_decision_itself_is_on_disk_too(desk: Desk, ask: Callable[[Desk], RemotingCommand]) -> None:
    """Else a broker that dies asks again about a transaction whose end it acknowledged."""
    ask_it(desk, ask)
    desk.settle()
    (operation,) = desk.broker.store.get_message(OP_TOPIC, 0, 0, 32, 1 << 20, None).records
    assert decode_message(operation).body == b"0,"


@appending
def test_an_answer_without_a_declared_durability_leaves_at_once(
    tmp_path: Path, ask: Callable[[Desk], RemotingCommand]
) -> None:
    desk = Desk(tmp_path)
    desk.send = lambda fields: desk.peer.ask(RequestCode.SEND_MESSAGE_V2, fields, b"x")  # type: ignore[method-assign]
    (answer,) = ask_it(desk, ask).received()
    assert answer.code == 0


def test_sends_that_a_channel_gives_up_wait_no_more(tmp_path: Path) -> None:
    """Else a client with many requests under way makes the broker refuse everybody's sends for good."""
    desk = Desk(tmp_path, **SYNC_FLUSH, send_thread_pool_queue_capacity=2)
    fields = half_fields("K", desk.broker.now_ms()) | {"i": ""}
    full = desk.broker.connect()
    full.channel._traffic = attrs.evolve(
        full.channel._traffic, budget=Budget(ConnectionOptions(max_held_requests_by_channel=0))
    )
    assert [full.ask(RequestCode.SEND_MESSAGE_V2, fields, b"x").code for _ in range(3)] == [
        ResponseCode.SYSTEM_BUSY
    ] * 3
    assert desk.send(fields).code == 0
