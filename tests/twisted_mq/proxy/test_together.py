"""Calls that come in one read: what comes of them together is what comes of them one by one."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import attrs
import pytest
from google.protobuf.wrappers_pb2 import StringValue
from h2.settings import SettingCodes
from hyperframe.frame import RstStreamFrame
from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.internet import defer

from tests.support.broker import BrokerInMemory
from tests.support.grpc_wire import ECHO, Wire, message
from twisted_mq.access.server_access import NOBODY_IS_ASKED
from twisted_mq.broker.grpc_port import grpc_port
from twisted_mq.protocol.bodies import BrokerData, QueueData, TopicConfig, TopicQueueMappingDetail, TopicRouteData
from twisted_mq.protocol.layouts.record_codec import decode_message
from twisted_mq.proxy import messages as v2
from twisted_mq.proxy.grpc.calls import Method
from twisted_mq.proxy.grpc.gathering import MOST_TOGETHER
from twisted_mq.proxy.grpc.limits import ConnectionLimits
from twisted_mq.proxy.grpc.status import GrpcStatus
from twisted_mq.proxy.handles import Handle, parse_handle
from twisted_mq.proxy.statuses import ok

SEND, ACK, RECEIVE = (f"/{v2.SERVICE}/{name}" for name in ("SendMessage", "AckMessage", "ReceiveMessage"))
PLAIN = {
    "message_id": "01AB",
    "tag": "TagA",
    "message_type": 1,
    "body_encoding": 1,
    "born_host": "bench",
    "queue_id": 2,
}
BORN = {"seconds": 1_795_217_217, "nanos": 345_000_000}


class Served:
    """A broker in memory whose gRPC port is called over one connection. Without `together` calls are handled one by one."""

    def __init__(self, *, together: bool = True, limits: ConnectionLimits | None = None, **options: Any) -> None:
        self.broker = BrokerInMemory(**options)
        self.broker.controller.random.seed(0)
        self.broker.controller.topics.update(
            [
                TopicConfig("T", 4, 4),
                TopicConfig("U", 2, 2, attributes={"message.type": "FIFO"}),
                TopicConfig("V", 3, 3, attributes={"message.type": "MIXED"}),
            ]
        )
        self.port = grpc_port(self.broker.controller, self.broker.served, NOBODY_IS_ASKED, 10, 8081)
        methods = dict(self.port.shared.methods)
        if not together:
            methods = {path: attrs.evolve(one, together=None) for path, one in methods.items()}
        self.wire = Wire(methods, limits)
        self.wire.shared.end_of_read = self.port.shared.end_of_read
        self.flushes = True

    def begin(self, path: str, request: Any, client: str = "c", **more: str) -> int:
        """Write a call's frames, without handing them in."""
        stream = self.wire.begin(path, x_mq_client_id=client, x_mq_language="JAVA", **more)
        self.wire.client.send_data(stream, message(request), end_stream=True)
        return stream

    def exchange(self) -> None:
        self.wire.exchange()
        self.broker.clock.advance(0)
        if self.flushes:
            self.broker.store.flush()
        self.wire.exchange()

    def calls(self, path: str, requests: Iterable[Any], **more: str) -> list[int]:
        """Make calls in one read; return their streams."""
        streams = [self.begin(path, one, **more) for one in requests]
        self.exchange()
        return streams

    def sent(self, requests: Iterable[Any], **more: str) -> list[Any]:
        """Return the answer to each send of one read."""
        streams = self.calls(SEND, requests, **more)
        return [(self.wire.answers(one, v2.SendMessageResponse), self.wire.status(one)) for one in streams]

    @property
    def stored(self) -> Any:
        """The records of all queues, and what was counted."""
        store, statistics = self.broker.store, self.broker.controller.statistics
        queues = [store.get_message(topic, queue, 0, 99, 1 << 20, None) for topic in "TUV" for queue in range(4)]
        counted = {
            (topic, queue): (one.times, one.bytes, one.more)
            for topic, puts in statistics.puts.items()
            for queue, one in puts.items()
        }
        return (
            [[bytes(record) for record in queue.records] for queue in queues],
            counted,
            statistics.put_messages,
            statistics.put_failed,
            self.port.messaging.counts,
            self.wire.shared.ended,
            self.wire.shared.calls,
        )

    @property
    def together(self) -> int:
        """The number of sends that were stored together with others."""
        return self.broker.controller.statistics.sends_together


def code_of(answered: Any) -> str:
    """Return the status of an answered call."""
    [answer], status = answered
    assert status == (GrpcStatus.OK, "")
    return str(v2.Code.Name(answer.status.code))


def send(topic: str = "T", body: bytes = b"hello", **system: Any) -> Any:
    """A send of one message."""
    system = {**PLAIN, "born_timestamp": BORN, **system}
    return v2.SendMessageRequest(messages=[{"topic": {"name": topic}, "body": body, "system_properties": system}])


def sends(count: int, **system: Any) -> list[Any]:
    return [send(**{"message_id": f"01{number:032X}", **system}) for number in range(count)]


texts = st.sampled_from(["", "A", "a b", " ", "a|b", "\u00e9", "x\x01", "\n"])
systems = st.fixed_dictionaries(
    {"message_id": st.sampled_from(["01AB", "01CD", "", " ", "\u00e9", "x" * 300])},
    optional={
        "tag": texts,
        "keys": st.lists(texts, max_size=2),
        "message_type": st.integers(0, 6),
        "body_encoding": st.integers(0, 2),
        "born_host": texts,
        "born_timestamp": st.sampled_from(
            [BORN, {}, {"seconds": -1}, {"seconds": 5, "nanos": -1}, {"seconds": 1 << 50}]
        ),
        "queue_id": st.integers(-1, 9),
        "delivery_attempt": st.integers(0, 2),
        "message_group": texts,
        "trace_context": texts,
        "body_digest": st.sampled_from([{}, {"type": 1, "checksum": "3610A686"}, {"type": 1, "checksum": "0"}]),
        "delivery_timestamp": st.just({"seconds": 1}),
        "priority": st.integers(-1, 5),
    },
)
requests = st.builds(
    lambda topic, body, system, user, count: v2.SendMessageRequest(
        messages=[
            {"topic": topic, "body": body, "system_properties": system, "user_properties": user} for _ in range(count)
        ]
    ),
    st.sampled_from([{"name": "T"}, {"name": "T"}, {"name": "V"}, {"name": "U"}, {"name": "none"}, {},
                     {"name": "T", "resource_namespace": "n"}, {"name": "TBW102"}]),
    st.sampled_from([b"hello", b"", b"y" * 400]),
    st.one_of(st.just({**PLAIN, "born_timestamp": BORN}), systems),
    st.sampled_from([{}, {}, {}, {"a": "b"}, {"KEYS": "b"}]),
    st.sampled_from([1, 1, 1, 1, 0, 2]),
)  # fmt: skip


@settings(max_examples=120, deadline=None)
@given(st.lists(st.lists(requests, max_size=12), min_size=1, max_size=4))
def test_any_sends_have_the_same_answers_and_records_together_and_one_by_one(reads: list[list[Any]]) -> None:
    found = []
    for together in (True, False):
        served = Served(together=together, auto_create_topic_enable=False)
        answers = [served.sent([send(topic) for topic in "TTTTVVV"])] + [served.sent(read) for read in reads]
        found.append((answers, served.stored))
    assert found[0] == found[1]


def test_plain_sends_of_one_read_are_stored_together_in_their_order() -> None:
    served = Served()
    served.sent(sends(4))  # the queues exist now
    answers = served.sent(sends(40))
    assert served.together == 40
    entries = [answer.entries[0] for [answer], status in answers if status == (GrpcStatus.OK, "")]
    assert [one.message_id for one in entries] == [f"01{number:032X}" for number in range(40)]
    assert [one.transaction_id for one in entries] == [one.message_id for one in entries]
    assert [one.offset for one in entries] == [1 + number // 4 for number in range(40)]


def test_a_send_that_is_not_plain_keeps_its_place_and_the_others_go_together() -> None:
    served = Served()
    served.sent(sends(4))  # the queues exist now
    answers = served.sent([*sends(3), send(tag="|"), *sends(3)])
    codes = [v2.Code.Name(answer.status.code) for [answer], _ in answers]
    assert codes == ["OK"] * 3 + ["ILLEGAL_MESSAGE_TAG"] + ["OK"] * 3
    assert served.together == 6


@pytest.mark.parametrize("options", [{"flush_disk_type": "SYNC_FLUSH"}, {"broker_permission": 4}], ids=str)
def test_sends_that_have_to_wait_or_are_refused_are_not_taken_together(options: dict[str, Any]) -> None:
    outcomes = []
    for together in (True, False):
        served = Served(together=together, **options)
        served.sent(sends(4))  # the queues exist now
        outcomes.append((served.sent(sends(3)), served.stored))
        assert served.together == 0
    assert outcomes[0] == outcomes[1]


def test_a_message_is_visible_when_the_answer_to_its_send_leaves() -> None:
    served = Served()
    served.begin(SEND, send())
    served.wire.send()
    assert b"01AB" in served.wire.transport.value()
    assert sum(served.broker.store.max_offset_in_queue("T", queue) for queue in range(4)) == 1


def test_calls_of_another_client_or_kind_between_them_are_answered_in_order() -> None:
    served = Served()
    served.sent(sends(4))  # the queues exist now
    streams = [served.begin(SEND, one) for one in sends(2)]
    streams += [served.begin(SEND, one, client="d") for one in sends(2)]
    streams.append(served.begin(SEND, send(), client=""))
    served.exchange()
    codes = [served.wire.answers(one, v2.SendMessageResponse)[0].status.code for one in streams]
    assert [v2.Code.Name(one) for one in codes] == ["OK"] * 4 + ["CLIENT_ID_REQUIRED"]


# a topic that another broker has, too


class BothBrokers:
    """Replacement of the routes that the name servers have: every topic has two queues at another broker."""

    route = TopicRouteData(
        queue_datas=[QueueData("broker-a", 2, 2, 6), QueueData("broker-cap", 4, 4, 6)],
        broker_datas=[BrokerData("C", name, {0: "10.0.0.1:1"}) for name in ("broker-a", "broker-cap")],
    )

    def get(self, topic: str) -> TopicRouteData:
        return self.route

    def update(self, topic: str) -> defer.Deferred[TopicRouteData]:
        return defer.succeed(self.route)


@pytest.mark.parametrize("together", [True, False])
def test_messages_go_to_the_queues_of_this_broker_and_come_from_them(together: bool) -> None:
    served = Served(together=together, parts={"route_cache": BothBrokers()})
    answers = served.sent(sends(4)) + served.sent(sends(12))
    assert [code_of(one) for one in answers] == ["OK"] * 16
    assert [served.broker.store.max_offset_in_queue("T", queue) for queue in range(6)] == [4, 4, 4, 4, 0, 0]
    assert served.together == (12 if together else 0)
    assert len(received(served, 16)) == 16


# acknowledgements


def received(served: Served, count: int) -> list[Any]:
    """Return the system properties of messages that a group has received."""
    subscription = {
        "group": {"name": "G"},
        "subscriptions": [{"topic": {"name": "T"}, "expression": {"expression": "*"}}],
    }
    settings = v2.TelemetryCommand(settings={"client_type": 3, "subscription": subscription})
    served.wire.call(f"/{v2.SERVICE}/Telemetry", settings, end=False, x_mq_client_id="c", x_mq_language="JAVA")
    asked = v2.ReceiveMessageRequest(
        group={"name": "G"}, message_queue={"topic": {"name": "T"}}, batch_size=32, invisible_duration={"seconds": 30},
        filter_expression={"type": 1, "expression": "*"}, long_polling_timeout={"seconds": 5},
    )  # fmt: skip
    [first] = served.calls(RECEIVE, [asked])  # a new group begins behind the last message
    served.sent(sends(count))
    served.exchange()
    found: list[Any] = []
    while len(found) < count:
        found += [
            one.message.system_properties
            for one in served.wire.answers(first, v2.ReceiveMessageResponse)
            if one.WhichOneof("content") == "message"
        ]
        [first] = served.calls(RECEIVE, [asked])
    return found


def ack(message_id: str, *handles: str, topic: str = "T", group: str = "G") -> Any:
    entries = [{"message_id": message_id, "receipt_handle": one} for one in handles]
    return v2.AckMessageRequest(group={"name": group}, topic={"name": topic}, entries=entries)


def acked(served: Served, requests: Sequence[Any]) -> list[Any]:
    streams = served.calls(ACK, requests)
    return [(served.wire.answers(one, v2.AckMessageResponse), served.wire.status(one)) for one in streams]


def reviving(folder: Path, **options: Any) -> Served:
    """Return a broker whose messages come back when their time is over."""
    folder.mkdir(exist_ok=True)
    served = Served(store_path_root_dir=str(folder), **options)
    served.broker.controller.waiting.start()
    served.broker.controller.pop.start()
    return served


def come_back(served: Served, seconds: int = 40) -> set[str]:
    """Return the ids of the messages that have come back for the group after their time was over."""
    for _ in range(seconds * 10):
        served.broker.clock.advance(0.1)
    served.broker.controller.pop.stop()
    served.broker.controller.waiting.stop()
    records = served.broker.store.get_message("%RETRY%G_T", 0, 0, 99, 1 << 20, None).records
    return {decode_message(one).properties["UNIQ_KEY"] for one in records}


def noted(served: Served) -> int:
    """Return how many records of the revive log wait for their time."""
    return int(served.broker.store.max_offset_in_queue("rmq_sys_wheel_timer", 0))


def test_acknowledgements_have_the_same_answers_and_effects_together_and_one_by_one(tmp_path: Path) -> None:
    found = []
    for together in (True, False):
        served = reviving(tmp_path / str(together), together=together, revive_queue_num=1000)
        handles = [(one.message_id, one.receipt_handle) for one in received(served, 10)]
        (first, handle), *others, left, other_left = handles
        parts = handle.split(" ")
        wrong = [
            "", "x", " ".join(parts[:8]), " ".join(["9" * 18, *parts[1:]]), " ".join([*parts[:5], "other", *parts[6:]]),
            " ".join([*parts[:4], "7", *parts[5:]]), " ".join([*parts[:7], "99999", parts[8]]),
            " ".join([*parts[:6], "88", *parts[7:]]), " ".join([parts[0], "5", *parts[2:]]), handle + "\u00e9",
            " ".join([*parts[:3], "999", *parts[4:]]), " ".join([*parts[:3], "1000", *parts[4:]]),
        ]  # fmt: skip
        requests = [ack(first, handle), *(ack("01", one) for one in wrong), *(ack(*one) for one in others)]
        requests += [
            ack(first),
            ack(first, handle, handle),
            ack(first, handle, topic="none"),
            ack(first, handle, group=""),
        ]
        requests += [ack(first, handle, topic="U"), ack(first, handle, group="other")]
        answers = acked(served, requests) + [one for asked in requests for one in acked(served, [asked])]
        acks = served.broker.controller.statistics.acks["T@G"].times
        in_flight = [served.broker.controller.pop.in_flight.count("T", "G", queue) for queue in range(4)]
        found.append((answers, acks, in_flight, served.stored, come_back(served)))
    for at_once, alone in zip(found[0][0], found[1][0], strict=True):
        assert at_once == alone
    assert found[0] == found[1]
    assert found[0][-1] == {left[0], other_left[0]}


def test_acknowledgements_of_one_pop_are_one_record(tmp_path: Path) -> None:
    served = reviving(tmp_path)
    found = received(served, 40)
    pops = {tuple(one.receipt_handle.split(" ")[:7]) for one in found}
    before = noted(served)
    answers = acked(served, [ack(one.message_id, one.receipt_handle) for one in found])
    assert [code_of(one) for one in answers] == ["OK"] * 40
    assert noted(served) - before == len(pops) < 20
    assert come_back(served) == set()


def test_acknowledgements_go_one_by_one_while_a_topic_is_static() -> None:
    served = Served()
    found = received(served, 8)
    served.broker.controller.static_topics.table.mappings["S"] = TopicQueueMappingDetail("S")
    before = noted(served)
    answers = acked(served, [ack(one.message_id, one.receipt_handle) for one in found])
    assert ([code_of(one) for one in answers], noted(served) - before) == (["OK"] * 8, 8)


def test_a_renewed_message_is_acknowledged_by_the_handle_that_its_client_has(tmp_path: Path) -> None:
    served = reviving(tmp_path)
    one, other = received(served, 2)
    [client], receiving = served.port.messaging.clients, served.port.messaging.receiving
    changed: list[Handle] = []
    renewed = receiving.change(client, "T", "G", parse_handle(one.receipt_handle), 60_000)
    defer.ensureDeferred(renewed).addCallback(changed.append)
    receiving.renewal.add(client, "T", ("G", one.message_id, one.receipt_handle), changed[0])
    served.broker.clock.advance(31)
    answers = acked(served, [ack(one.message_id, one.receipt_handle), ack(other.message_id, other.receipt_handle)])
    assert [code_of(answer) for answer in answers] == ["OK", "INVALID_RECEIPT_HANDLE"]
    assert come_back(served) == {other.message_id}


@pytest.mark.parametrize("together", [True, False])
def test_an_acknowledgement_waits_for_a_renewal_that_is_under_way(tmp_path: Path, together: bool) -> None:
    """The renewal makes a check point that only its own handle acknowledges."""
    served = reviving(tmp_path, together=together)
    [one] = received(served, 1)
    [client], renewal = served.port.messaging.clients, served.port.messaging.receiving.renewal
    key, gate, change = ("G", one.message_id, one.receipt_handle), defer.Deferred[None](), renewal._change

    async def late(*arguments: Any) -> Handle:
        await gate
        return await change(*arguments)

    renewal._change = late
    renewal.add(client, "T", key, parse_handle(one.receipt_handle))
    renewal.taken(client, [key], taken=True)
    served.broker.clock.advance(25)
    renewal.look()
    [stream] = served.calls(ACK, [ack(one.message_id, one.receipt_handle)])
    assert served.wire.status(stream) is None
    gate.callback(None)
    served.exchange()
    assert code_of((served.wire.answers(stream, v2.AckMessageResponse), served.wire.status(stream))) == "OK"
    assert come_back(served, 100) == set()


@pytest.mark.parametrize("changes", [1, 2])
def test_the_last_handle_of_changes_acknowledges_any_message_of_a_pop(tmp_path: Path, changes: int) -> None:
    """Each change makes a check point that starts at the message, not at the pop's first."""
    served = reviving(tmp_path)
    found = received(served, 12)
    kept = {one.message_id: one.receipt_handle for one in found}
    for _ in range(changes):
        served.broker.clock.advance(1)
        for message_id, handle in kept.items():
            asked = v2.ChangeInvisibleDurationRequest(
                group={"name": "G"}, topic={"name": "T"}, receipt_handle=handle, message_id=message_id,
                invisible_duration={"seconds": 20},
            )  # fmt: skip
            [stream] = served.calls(f"/{v2.SERVICE}/ChangeInvisibleDuration", [asked])
            [answer] = served.wire.answers(stream, v2.ChangeInvisibleDurationResponse)
            kept[message_id] = answer.receipt_handle
    answers = acked(served, [ack(*one) for one in list(kept.items())[:-1]])
    assert [code_of(one) for one in answers] == ["OK"] * 11
    assert come_back(served, 60) == {found[-1].message_id}


NOT_STORED = "the acknowledgement was not stored, acknowledge again: topic=T queue={} offset={}"


def test_what_the_store_does_not_take_is_refused_alike_and_counts_when_it_comes_again(tmp_path: Path) -> None:
    """Two messages were renewed for 60 s. The store takes nothing beyond 40 s for a while."""
    outcomes = []
    for together in (True, False):
        served = reviving(tmp_path / str(together), together=together, revive_queue_num=1)
        found = received(served, 12)
        [client], receiving = served.port.messaging.clients, served.port.messaging.receiving
        renewed = [found[0], found[5]]
        for one in renewed:
            changed: list[Handle] = []
            change = receiving.change(client, "T", "G", parse_handle(one.receipt_handle), 60_000)
            defer.ensureDeferred(change).addCallback(changed.append)
            receiving.renewal.add(client, "T", ("G", one.message_id, one.receipt_handle), changed[0])
        requests = [ack(one.message_id, one.receipt_handle) for one in found[:-1]]
        options, counts = served.broker.controller.options, served.port.messaging.counts
        options.timer_max_delay_sec = 40
        first = acked(served, requests)
        for (answer,), one in zip((answer for answer, _ in first), found, strict=False):
            receipt = parse_handle(one.receipt_handle).receipt
            failed = v2.Status(
                code="INTERNAL_SERVER_ERROR", message=NOT_STORED.format(receipt.queue_id, receipt.queue_offset)
            )
            assert answer.status == answer.entries[0].status == (failed if one in renewed else ok())
        assert (counts["AckMessage", v2.Code.OK], counts["AckMessage", v2.Code.INTERNAL_SERVER_ERROR]) == (9, 2)
        assert len(receiving.renewal) == 2
        again = [ack(one.message_id, one.receipt_handle) for one in renewed]
        assert [code_of(one) for one in acked(served, again)] == ["INTERNAL_SERVER_ERROR"] * 2
        options.timer_max_delay_sec = 3600
        assert [code_of(one) for one in acked(served, again)] == ["OK", "OK"]
        in_flight = sum(served.broker.controller.pop.in_flight.count("T", "G", queue) for queue in range(4))
        acks = served.broker.controller.statistics.acks["T@G"].messages
        outcomes.append((in_flight, acks, served.stored, len(receiving.renewal)))
        assert (in_flight, len(receiving.renewal), come_back(served, 80)) == (1, 0, {found[-1].message_id})
    assert outcomes[0] == outcomes[1]


def test_a_dead_letter_whose_acknowledgement_is_not_stored_is_answered_as_made(tmp_path: Path) -> None:
    """A client tries again after any failure: each try would make one more dead letter."""
    served = reviving(tmp_path)
    [one] = received(served, 1)
    served.broker.controller.options.timer_max_delay_sec = 10
    asked = v2.ForwardMessageToDeadLetterQueueRequest(
        group={"name": "G"}, topic={"name": "T"}, receipt_handle=one.receipt_handle, message_id=one.message_id
    )
    [stream] = served.calls(f"/{v2.SERVICE}/ForwardMessageToDeadLetterQueue", [asked])
    [answer] = served.wire.answers(stream, v2.ForwardMessageToDeadLetterQueueResponse)
    assert answer.status == ok()
    assert served.broker.store.max_offset_in_queue("%DLQ%G", 0) == 1
    assert come_back(served) == {one.message_id}


def test_refused_acknowledgements_are_timed_as_such(tmp_path: Path) -> None:
    served = reviving(tmp_path, metrics_exporter_type="PROM")
    found = received(served, 8)
    served.broker.controller.options.timer_max_delay_sec = 10
    acked(served, [ack(one.message_id, one.receipt_handle) for one in found])
    times = served.broker.controller.statistics.request_times
    assert times is not None
    assert sum(times.times[200051, 1, False, "success"].counts) == 8
    assert not sum(times.times[200051, 0, False, "success"].counts)


def test_acknowledgements_wait_for_the_disk() -> None:
    served = Served(flush_disk_type="SYNC_FLUSH", hold_flushes=True)
    requests = [ack(one.message_id, one.receipt_handle) for one in received(served, 3)]
    served.flushes = False
    streams = served.calls(ACK, requests)
    assert [served.wire.status(one) for one in streams] == [None] * 3
    assert served.wire.shared.calls == 5
    served.flushes = True
    served.exchange()
    codes = [one.status.code for stream in streams for one in served.wire.answers(stream, v2.AckMessageResponse)]
    assert codes == [v2.Code.OK] * 3
    assert served.wire.shared.calls == 2, "Telemetry, and a receive that waits"


# the connection


class Together:
    """A connection whose method takes calls together. `given` are the texts that came together, `alone` those that did not."""

    def __init__(self, answers: Callable[[list[str]], Sequence[Any]], limits: ConnectionLimits | None = None) -> None:
        self.given: list[list[str]] = []
        self.alone: list[str] = []

        def take(call: Any, requests: Sequence[bytes]) -> Sequence[Any]:
            self.given.append([StringValue.FromString(one).value for one in requests])
            return answers(self.given[-1])

        def handle(call: Any, request: Any) -> Any:
            self.alone.append(request.value)
            return request

        self.wire = Wire({ECHO: Method(StringValue, handle, together=take)}, limits)

    def call(self, *texts: str, **more: str) -> list[int]:
        """Write calls of one client, without handing them in."""
        streams = []
        for text in texts:
            streams.append(self.wire.begin(ECHO, x_mq_client_id="c", **more))
            self.wire.client.send_data(streams[-1], message(text), end_stream=True)
        return streams

    def ends(self, streams: Iterable[int]) -> list[tuple[list[str], Any]]:
        """Return the answers and the status of each call."""
        self.wire.exchange()
        return [(self.wire.texts(one), self.wire.status(one)) for one in streams]


def framed(texts: Iterable[str]) -> list[bytes]:
    return [message(one.upper()) for one in texts]


OK = (GrpcStatus.OK, "")


def test_what_is_not_taken_is_handled_alone_and_those_behind_it_together() -> None:
    together = Together(lambda texts: framed(itertools.takewhile(lambda one: one != "no", texts)))
    streams = together.call("a", "b", "no", "c", "d")
    assert together.ends(streams) == [([one], OK) for one in ("A", "B", "no", "C", "D")]
    assert (together.given, together.alone) == ([["a", "b", "no", "c", "d"], ["c", "d"]], ["no"])
    assert together.wire.shared.ended == {GrpcStatus.OK: 5}
    assert (together.wire.shared.calls, together.wire.server.calls) == (0, 0)


def test_a_method_that_takes_nothing_is_not_asked_again_in_this_read() -> None:
    together = Together(lambda texts: [])
    assert together.ends(together.call("a", "b", "c")) == [([one], OK) for one in "abc"]
    assert (together.given, together.alone) == ([["a", "b", "c"]], ["a", "b", "c"])


def test_at_most_so_many_go_together() -> None:
    together = Together(framed)
    texts = [str(number) for number in range(MOST_TOGETHER + 1)]
    assert together.ends(together.call(*texts)) == [([one], OK) for one in texts]
    assert [len(one) for one in together.given] == [MOST_TOGETHER, 1]


def test_a_failure_ends_each_of_them_and_none_is_handled_again() -> None:
    def fail(texts: list[str]) -> Sequence[bytes]:
        raise KeyError("oops")

    together = Together(fail)
    ends = together.ends(together.call("a", "b"))
    assert [status[0] for _, status in ends] == [GrpcStatus.INTERNAL] * 2
    assert (len(together.given), together.alone, together.wire.shared.calls) == (1, [], 0)


def test_answers_that_the_clients_window_has_no_room_for_leave_when_it_grows() -> None:
    together = Together(framed)
    together.wire.client.update_settings({SettingCodes.INITIAL_WINDOW_SIZE: 7})
    together.wire.exchange()
    streams = together.call("a", "long text")
    assert together.ends(streams)[0] == ([], None)
    together.wire.client.update_settings({SettingCodes.INITIAL_WINDOW_SIZE: 1000})
    assert together.ends(streams) == [(["A"], OK), (["LONG TEXT"], OK)]
    assert together.wire.shared.ended == {GrpcStatus.OK: 2}


def test_a_call_that_is_reset_in_the_same_read_is_forgotten_and_the_others_are_answered() -> None:
    together = Together(framed)
    first, second = together.call("a", "b")
    data = together.wire.client.data_to_send() + RstStreamFrame(first, error_code=8).serialize()
    together.wire.send(data)
    assert together.ends([second]) == [(["B"], OK)]
    assert (together.given, together.wire.shared.calls, together.wire.is_closed) == ([["a", "b"]], 0, False)


def test_calls_before_a_broken_frame_of_the_same_read_are_answered() -> None:
    together = Together(framed)
    *streams, _ = together.call("a", "b" * 5000, "c" * 5000)  # the last one ends in the piece that has the frame
    together.wire.send(together.wire.client.data_to_send() + b"\0\0\0\x01\x05\0\0\0\0")
    answers = [
        (together.wire.texts(one), together.wire.status(one)) for one in streams if together.wire.receive() or True
    ]
    assert answers == [(["A"], OK), (["B" * 5000], OK)]
    assert together.wire.is_closed


def test_past_the_limit_of_calls_they_are_refused_one_by_one() -> None:
    together = Together(framed, ConnectionLimits(calls=MOST_TOGETHER - 1))
    assert together.ends(together.call("a")) == [(["a"], OK)]
    assert (together.given, together.alone) == ([], ["a"])


def test_cut_calls_are_handled_alone() -> None:
    """Its headers come in one read, its message in the next."""
    together = Together(framed)
    [stream] = together.call("a")
    data = together.wire.client.data_to_send()
    together.wire.send(data[:-10])
    together.wire.send(data[-10:])
    assert together.ends([stream]) == [(["a"], OK)]
