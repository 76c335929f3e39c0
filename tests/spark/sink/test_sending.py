"""Sends of a partition: frames, order, and what happens when brokers fail."""

from __future__ import annotations

import collections
import itertools

import attrs
import pytest

from tests.spark.live.brokers import NOW_MS, Broker
from twisted_mq.protocol.bodies import MessageQueue
from twisted_mq.protocol.codes import ResponseCode
from twisted_mq.protocol.headers import SendMessageRequestHeaderV2
from twisted_mq.protocol.layouts.batch_entry import read_batch
from twisted_mq.protocol.messages.compression import CompressionType
from twisted_mq.protocol.text.java import java_hash
from twisted_mq.protocol.wire.command import RESPONSE_FLAG, RemotingCommand
from twisted_mq.protocol.wire.framing import FrameDecoder, encode_frame
from twisted_mq.protocol.wire.header_codec import decode_header
from twisted_mq.spark.live.cluster import Access
from twisted_mq.spark.live.errors import BrokerSilent, PeerSilent
from twisted_mq.spark.sink.columns import Compression, Outgoing
from twisted_mq.spark.sink.errors import RowsRefused, WrongRow
from twisted_mq.spark.sink.sending import PartitionSender, SendLimits

LIMITS = SendLimits(messages=3, size_bytes=1000, in_flight=2)


def row(number: int, place: int | str | None = None, *, topic: str = "T", alone: bool = False) -> Outgoing:
    return Outgoing(number, topic, b"%d" % number, b"UNIQ_KEY\x01q-%d\x02" % number, place, alone)


def test_rows_of_a_partition_come_in_order_to_one_queue(broker: Broker) -> None:
    topic = broker.topic(4)
    cluster = broker.cluster()
    sender = PartitionSender(cluster, "G", 0, 6, LIMITS, lambda: NOW_MS)
    for number in range(20):
        sender.add(row(number, topic=topic, alone=number == 7))
    sender.flush()
    cluster.close()
    queues = broker.read(topic)
    assert [len(queue) for queue in queues] == [0, 0, 20, 0]
    assert [message.body for message in queues[2]] == [b"%d" % number for number in range(20)]
    assert [message.unique_key for message in queues[2]] == [f"q-{number}" for number in range(20)]
    assert (sender.sent, sender.doubtful) == (20, 0)


def test_rows_of_a_key_and_of_a_queue_stay_in_order(broker: Broker) -> None:
    topic = broker.topic(4)
    cluster = broker.cluster()
    sender = PartitionSender(cluster, "G", 0, 0, LIMITS, lambda: NOW_MS)
    for number in range(60):
        sender.add(row(number, f"key{number % 5}" if number % 6 else 3, topic=topic))
    sender.flush()
    cluster.close()
    places: dict[int, list[int]] = collections.defaultdict(list)
    for number in range(60):
        places[abs(java_hash(f"key{number % 5}")) % 4 if number % 6 else 3].append(number)
    found = broker.read(topic)
    assert [[int(message.body) for message in queue] for queue in found] == [places[queue] for queue in range(4)]


@attrs.define
class FakeBroker:
    """Keeps what it is sent. `faults` says by the number of the send what goes wrong: a code, or a lost connection."""

    faults: dict[int, object] = attrs.field(factory=dict)
    stored: list[tuple[MessageQueue, list[bytes]]] = attrs.field(factory=list)
    sends: int = 0

    def answer(self, request: RemotingCommand) -> RemotingCommand | None:
        command = FrameDecoder().receive_data(encode_frame(request))[0]
        header = decode_header(SendMessageRequestHeaderV2, command)
        bodies = [body for _, body, _ in read_batch(command.body)] if header.batch else [command.body]
        fault = self.faults.get(self.sends, self.faults.get(-1))
        self.sends += 1
        if fault != "lost before":
            assert header.broker_name is not None
            if not isinstance(fault, ResponseCode):
                self.stored.append((MessageQueue(header.topic, header.broker_name, header.queue_id), bodies))
        if isinstance(fault, str):
            return None
        return RemotingCommand(fault or 0, command.opaque, RESPONSE_FLAG, remark="no")  # type: ignore[arg-type]


@attrs.define(eq=False)
class FakeConnection:
    address: str
    broker: FakeBroker
    closed: bool = False
    answers: collections.deque[RemotingCommand | None] = attrs.field(factory=collections.deque)
    _numbers: itertools.count[int] = attrs.field(factory=itertools.count)

    def send(self, request: RemotingCommand) -> int:
        if self.closed:
            raise PeerSilent(self.address, "closed")
        request.opaque = next(self._numbers)
        self.answers.append(self.broker.answer(request))
        return request.opaque

    def receive(self) -> RemotingCommand:
        answer = self.answers.popleft()
        if answer is None:
            self.closed = True
            raise PeerSilent(self.address, "closed the connection")
        return answer


@attrs.define
class FakeCluster:
    """Two queues at each of its brokers."""

    brokers: dict[str, FakeBroker]
    access: Access = attrs.field(factory=lambda: Access(("n:1",), tries=3))
    host: str = "here"
    pauses: list[int] = attrs.field(factory=list)
    connections: dict[str, FakeConnection] = attrs.field(factory=dict)

    def writable_queues(self, topic: str) -> tuple[MessageQueue, ...]:
        return tuple(MessageQueue(topic, name, number) for name in sorted(self.brokers) for number in range(2))

    def master(self, broker_name: str) -> str:
        return broker_name

    def connection(self, address: str) -> FakeConnection:
        found = self.connections.get(address)
        if found is None or found.closed:
            found = self.connections[address] = FakeConnection(address, self.brokers[address])
        return found

    def pause(self, failures: int) -> None:
        self.pauses.append(failures)


def sent(cluster: FakeCluster, rows: list[Outgoing], turn: int = 0) -> PartitionSender:
    sender = PartitionSender(cluster, "G", 5, turn, LIMITS, lambda: NOW_MS)  # type: ignore[arg-type]
    for one in rows:
        sender.add(one)
    sender.flush()
    return sender


def bodies(broker: FakeBroker) -> list[bytes]:
    return [body for _, some in broker.stored for body in some]


def test_a_send_without_an_answer_is_sent_again() -> None:
    broker = FakeBroker({1: "lost after", 3: "lost before"})
    sender = sent(FakeCluster({"a": broker}), [row(number) for number in range(9)])
    assert bodies(broker) == [b"0", b"1", b"2", *[b"3", b"4", b"5"] * 2, b"6", b"7", b"8"]
    assert sender.sent == 9


def test_lanes_over_a_lost_connection_all_go_on_in_order() -> None:
    broker = FakeBroker({1: "lost after", 2: "lost before"})
    sent(FakeCluster({"a": broker}), [row(number, number % 2) for number in range(30)])
    for queue in range(2):
        first_seen = dict.fromkeys(
            int(body) for place, some in broker.stored if place.queue_id == queue for body in some
        )
        assert list(first_seen) == list(range(queue, 30, 2))


def test_a_passing_refusal_is_tried_again_after_pauses() -> None:
    broker = FakeBroker({0: ResponseCode.SYSTEM_BUSY, 1: ResponseCode.SYSTEM_BUSY})
    cluster = FakeCluster({"a": broker})
    assert sent(cluster, [row(0)]).sent == 1
    assert (cluster.pauses, bodies(broker)) == ([1, 2], [b"0"])


def test_rows_for_any_queue_go_to_another_broker() -> None:
    down, up = FakeBroker({-1: "lost before"}), FakeBroker()
    sent(FakeCluster({"a": down, "b": up}), [row(number) for number in range(7)])
    assert (bodies(down), bodies(up)) == ([], [b"%d" % number for number in range(7)])


def test_rows_for_one_queue_do_not() -> None:
    down, up = FakeBroker({-1: "lost before"}), FakeBroker()
    with pytest.raises(BrokerSilent, match="broker a is not reached from here: a: closed the connection"):
        sent(FakeCluster({"a": down, "b": up}), [row(0, 1)])
    assert bodies(up) == []


def test_a_refusal_names_the_rows_of_its_send() -> None:
    broker = FakeBroker({1: ResponseCode.MESSAGE_ILLEGAL})
    with pytest.raises(RowsRefused, match="rows 3 to 5 of partition 5: a refuses the send: code 13, no") as caught:
        sent(FakeCluster({"a": broker}), [row(number) for number in range(9)])
    assert (caught.value.first, caught.value.last) == (3, 5)


def test_a_queue_that_there_is_not_names_its_row() -> None:
    with pytest.raises(WrongRow, match="row 1 of partition 5: queue 2: T has 2 writable queues, numbered from 0"):
        sent(FakeCluster({"a": FakeBroker()}), [row(0, 1), row(1, 2)])


def test_messages_that_are_stored_less_safely_are_counted() -> None:
    sender = sent(FakeCluster({"a": FakeBroker({0: ResponseCode.FLUSH_DISK_TIMEOUT})}), [row(0), row(1)])
    assert (sender.sent, sender.doubtful) == (2, 2)


def test_compressed_rows_are_read_as_they_were(broker: Broker) -> None:
    topic = broker.topic(1)
    cluster = broker.cluster()
    sender = PartitionSender(cluster, "G", 0, 0, LIMITS, lambda: NOW_MS)
    compression = Compression(CompressionType.LZ4, 10)
    bodies = [b"%d" % number * (1 if number % 3 else 500) for number in range(9)]
    for number, body in enumerate(bodies):
        packed, sys_flag = compression.applied(body)
        properties = b"UNIQ_KEY\x01q-%d\x02" % number
        sender.add(Outgoing(number, topic, packed, properties, 0, bool(sys_flag), sys_flag))
    sender.flush()
    cluster.close()
    (found,) = broker.read(topic)
    assert [message.body for message in found] == bodies
