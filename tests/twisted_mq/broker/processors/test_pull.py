"""Pulls: found, filtered, waiting, out of range."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import attrs

from tests.support.broker import BrokerInMemory, Peer
from tests.support.heartbeat import heartbeat
from tests.support.store_load import START_MS, small_config
from tests.twisted_mq.broker.processors.test_send import fields, send
from twisted_mq.broker.ordered_topics import OrderedParts
from twisted_mq.broker.waiting_requests import WaitingKind
from twisted_mq.protocol.bodies.topic_config import ORDER, ORDER_QUEUES
from twisted_mq.protocol.codes import ResponseCode
from twisted_mq.protocol.layouts.record_codec import iterate_messages
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.protocol.wire.framing import encode_frame
from twisted_mq.storage.config import FlushDiskType
from twisted_mq.storage.interfaces import GetResult
from twisted_mq.storage.message_store import FileMessageStore
from twisted_mq.storage.retention import DiskUsage, remove_file

SUBSCRIPTION, SUSPEND, COMMIT = 4, 2, 1
SMALL = {"mapped_file_size_commit_log": 4096, "mapped_file_size_consume_queue": 200}


def pull_fields(offset: int = 0, sys_flag: int = SUBSCRIPTION, **more: str) -> dict[str, str]:
    return {"consumerGroup": "G", "topic": "T", "queueId": "0", "queueOffset": str(offset), "maxMsgNums": "32",
            "sysFlag": str(sys_flag), "commitOffset": "0", "suspendTimeoutMillis": "15000", "subscription": "*",
            "subVersion": "1", "expressionType": "TAG", **more}  # fmt: skip


def pull(peer: Peer, **more: object) -> RemotingCommand:
    return peer.ask(11, pull_fields(**more))  # type: ignore[arg-type]


def bodies(answer: RemotingCommand) -> list[bytes]:
    return [message.body for message in iterate_messages(answer.body)]


def tagged(peer: Peer, tag: str, body: bytes) -> None:
    assert send(peer, body, properties=f"UNIQ_KEY\x01K\x02TAGS\x01{tag}\x02").code == 0


def test_found_messages_come_as_stored_with_the_next_offset() -> None:
    broker = BrokerInMemory()
    peer = broker.connect()
    for body in (b"a", b"b", b"c"):
        send(peer, body)
    answer = pull(peer)
    assert (answer.code, answer.remark, bodies(answer)) == (0, "FOUND", [b"a", b"b", b"c"])
    assert answer.ext_fields == {"groupSysFlag": "0", "maxOffset": "3", "minOffset": "0", "nextBeginOffset": "3",
                                 "suggestWhichBrokerId": "0", "topicSysFlag": "0"}  # fmt: skip
    assert bodies(pull(peer, offset=1, maxMsgNums="1")) == [b"b"]


def test_same_answer_in_the_binary_encoding() -> None:
    broker = BrokerInMemory()
    peer = broker.connect()
    send(peer, b"a")
    answer = peer.ask(11, pull_fields(), serialize_type=1)
    assert (answer.code, answer.remark, bodies(answer), answer.serialize_type) == (0, "FOUND", [b"a"], 1)
    assert answer.ext_fields["nextBeginOffset"] == "1"


def test_tags_are_filtered_by_their_hash() -> None:
    broker = BrokerInMemory()
    peer = broker.connect()
    for tag, body in (("A", b"1"), ("B", b"2"), ("C", b"3")):
        tagged(peer, tag, body)
    assert bodies(pull(peer, subscription="A || C")) == [b"1", b"3"]
    nothing = pull(peer, subscription="X")
    assert (nothing.code, nothing.ext_fields["nextBeginOffset"]) == (20, "3")


def test_ordered_topic_is_read_message_by_message(tmp_path: Path) -> None:
    """Its reads look at the term and place of each message; other reads may join neighbours."""
    config = small_config(tmp_path, flush_disk_type=FlushDiskType.ASYNC_FLUSH)
    broker = BrokerInMemory(store=FileMessageStore(config, lambda: START_MS))
    peer, topics = broker.connect(), broker.controller.topics.topics
    assert [send(peer, body).code for body in (b"a", b"b", b"c")] == [0] * 3
    found: list[GetResult] = []

    def read(config: object, queue_id: int, offset: int, group: str, read: Callable[[], GetResult]) -> GetResult:
        found.append(read())
        return found[-1]

    topics["T"] = attrs.evolve(topics["T"], attributes={ORDER: ORDER_QUEUES})
    absent = None
    reads = SimpleNamespace(read=read, committed=lambda config, queue_id, group, offset, epoch: offset)
    broker.controller.ordering.parts = OrderedParts(absent, reads, absent, absent)  # type: ignore[arg-type]
    answer = pull(peer)
    assert (answer.code, answer.remark, bodies(answer)) == (0, "FOUND", [b"a", b"b", b"c"])
    assert [len(one.records) for one in found] == [3]


def test_pull_at_the_end_waits_and_gets_the_whole_batch_that_arrives() -> None:
    broker = BrokerInMemory()
    consumer, producer = broker.connect(), broker.connect()
    send(producer, b"old")
    consumer.send(RemotingCommand(11, ext_fields=pull_fields(1, SUBSCRIPTION | SUSPEND)))
    assert consumer.received() == []
    frames = b""
    for body in (b"x", b"y"):
        command = RemotingCommand(310, 9, body=body, ext_fields=fields())
        frames += encode_frame(command)
    producer.channel.dataReceived(frames)
    (answer,) = consumer.received()
    assert (answer.code, bodies(answer), broker.controller.polling.count(WaitingKind.PULL)) == (0, [b"x", b"y"], 0)


def test_waiting_pull_is_answered_when_its_time_is_up() -> None:
    broker = BrokerInMemory()
    peer = broker.connect()
    send(peer, b"old")
    peer.send(RemotingCommand(11, ext_fields=pull_fields(1, SUBSCRIPTION | SUSPEND)))
    peer.received()
    broker.clock.advance(14)
    broker.controller.polling.answer_expired(broker.now_ms())
    assert peer.received() == []
    broker.clock.advance(1)
    broker.controller.polling.answer_expired(broker.now_ms())
    (answer,) = peer.received()
    assert (answer.code, answer.remark, answer.ext_fields["nextBeginOffset"]) == (19, "OFFSET_OVERFLOW_ONE", "1")


def test_pull_without_suspend_flag_is_answered_at_once() -> None:
    broker = BrokerInMemory()
    peer = broker.connect()
    send(peer, b"old")
    assert pull(peer, offset=1).code == 19


def test_pull_outside_of_the_queue_is_told_where_to_go_on(tmp_path: Path) -> None:
    """The log's first file expired."""
    broker = BrokerInMemory(store=FileMessageStore(small_config(tmp_path, **SMALL), lambda: START_MS))
    store, peer = broker.store, broker.connect()
    assert [send(peer, bytes(100)).code for _ in range(60)] == [0] * 60
    store.close()
    os.utime(tmp_path / "commitlog" / ("0" * 20), (0, 0))
    store.start()
    for paths in [store.retention.expire_log(START_MS, 4, DiskUsage(0.1, 0.1)), *store.retention.trim()]:
        for path in paths:
            remove_file(path)
    first, end = store.min_offset_in_queue("T", 0), store.max_offset_in_queue("T", 0)
    assert 0 < first < end == 60
    for offset, code, remark, following in (
        (0, 21, "OFFSET_TOO_SMALL", first),
        (first - 1, 21, "OFFSET_TOO_SMALL", first),
        (end, 19, "OFFSET_OVERFLOW_ONE", end),
        (end + 1, 21, "OFFSET_OVERFLOW_BADLY", end),
    ):
        answer = pull(peer, offset=offset)
        told = {name: int(answer.ext_fields[name]) for name in ("nextBeginOffset", "minOffset", "maxOffset")}
        assert (answer.code, answer.remark) == (code, remark)
        assert told == {"nextBeginOffset": following, "minOffset": first, "maxOffset": end}
    assert store.check() == []
    store.close()


def test_offset_travels_with_the_pull() -> None:
    broker = BrokerInMemory()
    peer = broker.connect()
    send(peer, b"a")
    pull(peer, sys_flag=SUBSCRIPTION | COMMIT, commitOffset="1")
    assert broker.controller.offsets.query("G", "T", 0) == 1


def test_group_that_may_not_consume_is_told_who_forbids_it() -> None:
    broker = BrokerInMemory()
    peer = broker.connect()
    send(peer, b"a")
    group = broker.controller.groups.find("G")
    broker.controller.groups.update(type(group)(group_name="G", consume_enable=False))
    answer = pull(peer)
    assert (answer.code, answer.remark) == (16, "subscription group no permission, G")
    assert answer.ext_fields == {"forbiddenType": "2"}


def test_group_that_may_not_broadcast_is_told_so_until_it_shares_its_messages() -> None:
    broker = BrokerInMemory()
    peer = broker.connect()
    send(peer, b"a")
    group = broker.controller.groups.find("G")
    broker.controller.groups.update(attrs.evolve(group, consume_broadcast_enable=False))
    heartbeat(peer, "G", "T", message_model="BROADCASTING")
    answer = pull(peer, sys_flag=0)
    assert (answer.code, answer.remark) == (16, "the consumer group[G] can not consume by broadcast way")
    assert answer.ext_fields == {"forbiddenType": "4"}
    heartbeat(peer, "G", "T")
    assert bodies(pull(peer, sys_flag=0, subVersion="0")) == [b"a"]


def test_sql_subscription_is_refused_where_it_is_not_enabled() -> None:
    broker = BrokerInMemory()
    peer = broker.connect()
    send(peer, b"a")
    answer = pull(peer, expressionType="SQL92", subscription="a > 1")
    assert answer.code == 1
    assert answer.remark == "The broker does not support consumer to filter message by SQL92"


def test_lost_connection_forgets_its_waiting_pull() -> None:
    broker = BrokerInMemory()
    peer, producer = broker.connect(), broker.connect()
    send(producer, b"old")
    peer.send(RemotingCommand(11, ext_fields=pull_fields(1, SUBSCRIPTION | SUSPEND)))
    peer.channel.connectionLost()
    send(producer, b"new")
    assert broker.controller.polling.count(WaitingKind.PULL) == 0


def rejecting(**options: object) -> BrokerInMemory:
    broker = BrokerInMemory(reject_pull_consumer_enable=True, **options)
    send(broker.connect())
    return broker


def test_a_reader_that_is_no_member_of_a_group_is_refused_where_pull_consumers_are() -> None:
    answer = pull(rejecting().connect())
    assert answer.code == ResponseCode.SUBSCRIPTION_NOT_EXIST
    assert (answer.remark or "").startswith(
        "the consumer's group info not exist, or the pull consumer is rejected by server."
    )


def test_members_of_push_groups_and_tools_are_served_where_pull_consumers_are_not() -> None:
    broker = rejecting()
    peer = broker.connect()
    heartbeat(peer, "G", "T")
    assert pull(peer).code == 0
    assert pull(broker.connect()).code == 0  # Apache's asks for the channel only where the group pulls by itself
    assert pull(broker.connect(), consumerGroup="TOOLS_CONSUMER").code == 0


def test_pull_consumers_are_not_registered_where_they_are_refused() -> None:
    broker = rejecting()
    peer = broker.connect()
    heartbeat(peer, "G", "T", consume_type="CONSUME_ACTIVELY")
    assert broker.controller.consumers.groups == {}
    assert pull(peer).code == ResponseCode.SUBSCRIPTION_NOT_EXIST
    heartbeat(peer, "Pushed", "T")
    assert list(broker.controller.consumers.groups) == ["Pushed"]
