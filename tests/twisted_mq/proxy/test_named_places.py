"""Hostile values in every gRPC call that names a place: nothing of others is read, copied or ended by them."""

from __future__ import annotations

import time
from collections.abc import Iterator

import attrs
import grpc
import pytest

from tests.support.grpc_client import GrpcClient, code
from tests.support.named_places_grpc import NAMED_IN_CALLS, Known
from tests.support.proxied_server import MODES
from twisted_mq.protocol.bodies import TopicConfig
from twisted_mq.proxy import messages as v2
from twisted_mq.testing import EmbeddedServer

HANDED = b"handed out"
OTHER_TOPICS = ("RMQ_SYS_TRANS_HALF_TOPIC", "rmq_sys_wheel_timer")
NO_PLACES = {"QueryRoute", "Heartbeat", "SendMessage", "QueryAssignment", "ReceiveMessage", "NotifyClientTermination"}
NOT_SERVED = {"PullMessage", "UpdateOffset", "GetOffset", "QueryOffset", "SyncLiteSubscription"}
"""As in Apache's 5.3.3."""


@pytest.fixture(scope="module", params=list(MODES))
def server(request: pytest.FixtureRequest) -> Iterator[EmbeddedServer]:
    with MODES[request.param](store="memory", broker_options={"recall_message_enable": True}) as server:
        yield server


@attrs.define
class World:
    """An owner with a message that is handed out, a half message and one that waits; a stranger; the places of all records."""

    server: EmbeddedServer
    topic: str
    owner: GrpcClient
    stranger: GrpcClient
    handle: str
    half: tuple[str, str]
    waiting: str
    known: Known
    owners: str

    def bodies(self, topic: str) -> list[bytes]:
        return [one.body for one in self.server.messages(topic)]

    def end(self) -> str:
        message_id, transaction_id = self.half
        ended = self.owner.call(
            "EndTransaction", topic={"name": self.topic}, message_id=message_id, transaction_id=transaction_id,
            resolution=1, source=1,
        )  # fmt: skip
        return code(ended)


@pytest.fixture
def world(server: EmbeddedServer) -> Iterator[World]:
    topic = server.new_topic("owned")
    owners, thieves = f"owners-{topic}", f"thieves-{topic}"
    kind = TopicConfig(topic, 4, 4, attributes={"message.type": "MIXED"})
    server._thread.call(lambda: server._controller.topics.update([kind]))
    with GrpcClient(server.grpc) as owner, GrpcClient(server.grpc) as consumer, GrpcClient(server.grpc) as stranger:
        consumer.settle_consumer(topic, owners)
        owner.settle_producer(topic)
        stranger.settle_consumer(topic, thieves)
        waiting = owner.send(topic, b"waits", message_type=3, delivery_timestamp={"seconds": int(time.time()) + 3600})
        half = owner.send(topic, b"half", message_type=4).entries[0]
        owner.send(topic, HANDED)
        [message] = consumer.receive(topic, owners, long_polling_timeout={"seconds": 10})
        handle = message.system_properties.receipt_handle
        records = [one for name in OTHER_TOPICS for one in server.messages(name)]
        known = Known(
            topic, thieves, "broker-a", handle, half.transaction_id,
            (int(handle.split(" ")[-1]) + 40, *(one.physical_offset for one in records)), int(time.time() * 1000),
        )  # fmt: skip
        yield World(
            server, topic, owner, stranger, handle, (half.message_id, half.transaction_id),
            waiting.entries[0].recall_handle, known, owners,
        )  # fmt: skip


@pytest.mark.parametrize("name", list(NAMED_IN_CALLS))
def test_hostile_places_reach_nothing(world: World, name: str) -> None:
    answers = set()
    for asked in NAMED_IN_CALLS[name].hostile(world.known):
        try:
            answers.add(code(world.stranger.call(name, **asked)))
        except grpc.RpcError as error:
            answers.add(error.code().name)
    topics = [f"%{kind}%{group}" for kind in ("DLQ", "RETRY") for group in (world.owners, world.known.thieves)]
    taken = {topic: world.bodies(topic) for topic in topics}
    allowed = {HANDED} if name == "ForwardMessageToDeadLetterQueue" else set()  # a group may give up what it may read
    assert set().union(*taken.values()) <= allowed, taken
    assert taken[f"%DLQ%{world.owners}"] == taken[f"%RETRY%{world.owners}"] == []
    assert world.bodies(world.topic) == [HANDED]
    assert answers
    acked = world.owner.call(
        "AckMessage", group={"name": world.owners}, topic={"name": world.topic},
        entries=[{"message_id": "m", "receipt_handle": world.handle}],
    )  # fmt: skip
    recalled = world.owner.call("RecallMessage", topic={"name": world.topic}, recall_handle=world.waiting)
    assert (code(acked), code(recalled), world.end()) == ("OK", "OK", "OK")
    assert world.bodies(world.topic) == [HANDED, b"half"]


def test_another_clients_transaction_is_neither_ended_nor_forgotten(world: World) -> None:
    with GrpcClient(world.server.grpc) as thief:
        message_id, transaction_id = world.half
        for resolution in (1, 2):
            ended = thief.call(
                "EndTransaction", topic={"name": world.topic}, message_id=message_id, transaction_id=transaction_id,
                resolution=resolution, source=1,
            )  # fmt: skip
            assert code(ended) != "OK"
    assert world.end() == "OK"
    assert world.bodies(world.topic) == [HANDED, b"half"]


def test_the_table_has_every_call_with_a_place() -> None:
    assert NAMED_IN_CALLS.keys() | NO_PLACES | NOT_SERVED | {"Telemetry"} == v2.METHODS.keys()
