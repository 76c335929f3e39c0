"""Messages through each protocol: sent by gRPC and consumed by remoting consumers, and the reverse, with all properties.

The tables here are those of docs/reference/grpc.md. Our servers must do the same as Apache's, so both run them.
"""

from __future__ import annotations

import json
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import attrs
import pytest

from interop.peers.clients import Clients, JavaPeer, Producer, PushConsumer, TransactionProducer, bodies
from interop.peers.grpc_peers.clients import CLIENTS
from interop.peers.grpc_peers.proxies import GrpcServers, servers_at
from interop.peers.grpc_peers.scenarios import Stage
from interop.peers.line_peer import Record
from interop.peers.process import wait_until
from interop.peers.servers import ask, running
from twisted_mq.blocking import Admin

pytestmark = pytest.mark.peer

CLIENT = CLIENTS["java-5.2.0"]
FIELDS: Record = {"tag": "new", "keys": ["k1", "k2"], "properties": {"colour": "blé"}}
COMPRESSED = "compressed " * 1000
"""Apache's Java clients compress bodies of 4 KiB and more."""
OF_THE_WAY = {
    "BORN_TIMESTAMP",
    "CLUSTER",
    "CONSUME_START_TIME",
    "MAX_OFFSET",
    "MIN_OFFSET",
    "MSG_REGION",
    "POP_CK",
    "1ST_POP_TIME",
    "TRACE_ON",
    "__BORNHOST",
    "REAL_TOPIC",
    "REAL_QID",
    "TRANSACTION_CHECK_TIMES",
    "TIMER_ROLL_TIMES",
    "TIMER_ENQUEUE_MS",
    "TIMER_DEQUEUE_MS",
    "TIMER_OUT_MS",
}
"""Properties that say when and by which way a message came, not what it is."""
GET_CONSUMER_CONNECTION_LIST, CONSUME_MESSAGE_DIRECTLY = 203, 309


def answer_of(frame: bytes) -> tuple[int, dict[str, object]]:
    """The code and the JSON body of an answer."""
    (mark,) = struct.unpack_from(">I", frame)
    length = mark & 0xFFFFFF
    body = frame[4 + length :]
    return json.loads(frame[4 : 4 + length])["code"], json.loads(body) if body else {}


@attrs.define
class Doors:
    """The servers of one kind, a remoting client and a gRPC client."""

    servers: GrpcServers
    java: JavaPeer
    remoting: Clients
    stage: Stage

    def remoting_properties(self, topic: str) -> dict[str, str]:
        """Return the properties of a topic's message at a push consumer and a popping consumer of separate groups."""
        seen = []
        for kind in (self.remoting.push_consumer, self.remoting.pop_consumer):
            group = self.stage.group()
            if kind == self.remoting.pop_consumer:
                self.pop_by(topic, group)
            [message] = kind(group, topic).wait(lambda messages: messages)
            seen.append({"body": message["body"], "id": message["msg_id"], **message["properties"]})
        pulled, popped = ({name: one[name] for name in one.keys() - OF_THE_WAY} for one in seen)
        assert pulled == popped
        return pulled

    def pop_by(self, topic: str, group: str) -> None:
        names = ["-n", self.servers.name_server, "-b", self.servers.broker, "-t", topic, "-g", group]
        assert "success" in self.java.mqadmin("setConsumeMode", *names, "-m", "POP", "-q", "0")

    def taken_by_grpc(self, topic: str, count: int = 1) -> dict[str, Record]:
        """The messages of a topic by body, as a simple consumer sees them."""
        taken = self.stage.simple(self.stage.group(), topic).take(count).values()
        return {one["body"]: one for one in taken}

    def progress(self, group: str, topic: str) -> tuple[int, int]:
        """Return the number of messages of a topic that wait for a group, and that its members hold, from Apache's mqadmin."""
        printed = self.java.mqadmin("consumerProgress", "-n", self.servers.name_server, "-g", group, "-t", topic)
        rows = [line.split() for line in printed.splitlines() if line.startswith(topic)]
        assert rows, printed
        # Topic, Broker, QID, Broker Offset, Consumer Offset, Diff, Inflight, date, time
        return sum(int(row[5]) for row in rows), sum(int(row[6]) for row in rows)


@pytest.fixture(scope="module", params=["ours local", "Apache's local"])
def doors(request: pytest.FixtureRequest, java: JavaPeer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Doors]:
    directory = tmp_path_factory.mktemp("doors")
    with ExitStack() as stack:
        servers = stack.enter_context(running(servers_at(request.param, directory / "servers")))
        admin = stack.enter_context(Admin(servers.name_server))
        peer = CLIENT.start(servers.address, directory)
        stack.callback(peer.close)
        remoting = Clients(java, servers.name_server)
        stack.callback(remoting.stop)
        yield Doors(servers, java, remoting, Stage(CLIENT, peer, admin))


def _normal(producer: TransactionProducer, topic: str) -> Record:
    return producer.send(topic, "body", **FIELDS)


def _fifo(producer: TransactionProducer, topic: str) -> Record:
    return producer.send(topic, "body", message_group="one", **FIELDS)


def _delay(producer: TransactionProducer, topic: str) -> Record:
    at_ms = (int(time.time()) + 2) * 1000
    return {"deliver_at_ms": at_ms, **producer.send(topic, "body", deliver_at_ms=at_ms, **FIELDS)}


def _transaction(producer: TransactionProducer, topic: str) -> Record:
    properties = {**FIELDS["properties"], "local": "commit"}
    return producer.command("send_in_transaction", topic=topic, body="body", **{**FIELDS, "properties": properties})


Expected = Callable[[Record], dict[str, str]]
SENT_BY_GRPC: dict[str, tuple[Callable[[TransactionProducer, str], Record], Expected]] = {
    "NORMAL": (_normal, lambda sent: {}),
    "FIFO": (_fifo, lambda sent: {"__SHARDINGKEY": "one"}),
    "DELAY": (
        _delay,
        lambda sent: {"TIMER_DELIVER_MS": str(sent["deliver_at_ms"])},
    ),
    "TRANSACTION": (
        _transaction,
        lambda sent: {"local": "commit", "TRAN_MSG": "true", "__transactionId__": sent["message_id"]},
    ),
}
"""Type of the message -> how it is sent by gRPC, and the properties that remoting consumers then see beside the common ones."""


@pytest.mark.parametrize("kind", SENT_BY_GRPC)
def test_what_gRPC_sends_is_seen_by_pulling_and_popping_consumers(doors: Doors, kind: str) -> None:
    send, expected = SENT_BY_GRPC[kind]
    topic = doors.stage.topic(kind)
    sent = send(doors.stage.transaction_producer(topic), topic)
    assert doors.remoting_properties(topic) == {
        "body": "body",
        "id": sent["message_id"],
        "UNIQ_KEY": sent["message_id"],
        "TAGS": "new",
        "KEYS": "k1 k2",
        "colour": "blé",
        "PGROUP": topic,
        "RECONSUME_TIME": "0",
        **expected(sent),
    }


SENT_BY_REMOTING: dict[str, Record] = {
    "plain": {},
    COMPRESSED: {},
    "delayed by level": {"delay_level": 1},
    "delayed": {"delay_ms": 1500},
}
"""Body -> more fields of a message that a remoting producer sends."""


def test_what_remoting_sends_is_seen_by_gRPC_consumers(doors: Doors) -> None:
    topic = doors.stage.topic()
    producer: Producer = doors.remoting.producer()
    common = {"tags": "new", "keys": "k1 k2", "properties": {"colour": "blé"}}
    at_ms = (int(time.time()) + 2) * 1000
    more = {**SENT_BY_REMOTING, "timed": {"deliver_ms": at_ms}}
    ids = {body: producer.send(topic, body, **common, **fields)["msg_ids"][0] for body, fields in more.items()}
    if doors.servers.kind == "ours":  # Apache's broker gives all messages of a batch one id
        batch = [{"topic": topic, "body": f"batch {at}", **common} for at in range(3)]
        sent = producer.command("send_batch", messages=batch)
        ids |= {f"batch {at}": one for at, one in enumerate(sent["msg_ids"])}
    taken = doors.taken_by_grpc(topic, len(ids))
    assert {
        body: (one["message_id"], one["tag"], one["keys"], one["properties"], one["attempt"])
        for body, one in taken.items()
    } == {body: (message_id, "new", ["k1", "k2"], {"colour": "blé"}, 1) for body, message_id in ids.items()}
    assert (taken["timed"]["deliver_at_ms"], taken["plain"]["deliver_at_ms"]) == (at_ms, None)


def test_a_transaction_of_a_remoting_producer_is_seen_by_gRPC_consumers(doors: Doors) -> None:
    topic = doors.stage.topic("TRANSACTION")
    producer = doors.remoting.transaction_producer("remoting-producers")
    producer.begin(topic, "kept", local="commit")
    producer.begin(topic, "dropped", local="rollback")
    producer.begin(topic, "kept by check", check="commit")
    assert set(doors.taken_by_grpc(topic, 2)) == {"kept", "kept by check"}


def test_progress_of_groups_of_each_door_is_told_by_mqadmin(doors: Doors) -> None:
    """mqadmin shows consumed and waiting messages of a gRPC group. A pulling group of the same topic also ends without a rest."""
    topic, pulling, receiving = doors.stage.topic(), doors.stage.group(), doors.stage.group()
    consumer, producer = doors.stage.simple(receiving, topic), doors.stage.producer(topic)
    producer.send(topic, "one")
    consumer.take(1)
    producer.send(topic, "two")
    assert doors.progress(receiving, topic) == (1, 0)
    consumer.take(1)
    doors.remoting.push_consumer(pulling, topic).wait_bodies({"one", "two"})
    for group in (receiving, pulling):
        wait_until(lambda group=group: doors.progress(group, topic) == (0, 0), f"{group} is done")


@attrs.frozen
class Member:
    """A push consumer of the gRPC client for Java, with a message that it has consumed."""

    topic: str
    group: str
    client_id: str
    message_id: str
    """The one that says where the broker has the message."""
    consumer: PushConsumer


@pytest.fixture(scope="module")
def member(doors: Doors) -> Member:
    stage = doors.stage
    topic, group = stage.topic(), stage.group()
    consumer, producer = stage.push(group, topic), stage.producer(topic)
    producer.send(topic, "again", properties={"failures": "0"})
    consumer.wait_bodies({"again"})
    port = int(doors.servers.broker.rpartition(":")[2])
    _, connected = answer_of(ask(port, GET_CONSUMER_CONNECTION_LIST, {"consumerGroup": group}))
    [connection] = connected["connectionSet"]  # type: ignore[misc]
    [stored] = stage.admin.messages(topic)
    return Member(topic, group, connection["clientId"], stored.msg_id, consumer)


def test_threads_of_a_gRPC_consumer_are_printed_by_mqadmin(doors: Doors, member: Member) -> None:
    names = ["-n", doors.servers.name_server, "-g", member.group, "-i", member.client_id]
    printed = doors.java.mqadmin("consumerStatus", *names, "-s")
    assert "java.lang.Thread.run(" in printed


def test_a_gRPC_consumer_consumes_a_message_that_the_broker_hands_it(doors: Doors, member: Member) -> None:
    fields = {
        "consumerGroup": member.group, "clientId": member.client_id, "msgId": member.message_id,
        "topic": member.topic, "brokerName": "broker-a",
    }  # fmt: skip
    port = int(doors.servers.broker.rpartition(":")[2])
    code, result = answer_of(ask(port, CONSUME_MESSAGE_DIRECTLY, fields))
    assert (code, result["consumeResult"], result["remark"]) == (0, "CR_SUCCESS", "from gRPC client")
    wait_until(lambda: bodies(member.consumer.messages) == ["again", "again"], "the message was consumed once more")


def test_state_of_a_gRPC_consumer_is_printed_by_mqadmin(doors: Doors, member: Member) -> None:
    """Apache's proxy leaves the broker's question without an answer, so mqadmin hands no message to its consumers."""
    if doors.servers.kind != "ours":
        pytest.skip("the question is not answered")
    names = ["-n", doors.servers.name_server, "-g", member.group]
    printed = doors.java.mqadmin("consumerStatus", *names, "-i", member.client_id)
    assert "CONSUME_PASSIVELY" in printed
    assert member.topic in printed
    asked = ["-i", member.message_id, "-t", member.topic, "-g", member.group, "-d", member.client_id]
    assert "CR_SUCCESS" in doors.java.mqadmin("queryMsgById", "-n", doors.servers.name_server, *asked)
