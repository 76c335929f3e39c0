"""The embedded server in its thread: what a blocking test does with it."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.certificates import Authority
from twisted_mq.client import (
    ConsumeFromWhere,
    ConsumerOptions,
    ConsumeStatus,
    Message,
    PushConsumer,
    SendFailed,
)
from twisted_mq.protocol.codes import ResponseCode
from twisted_mq.protocol.errors import BrokerError
from twisted_mq.testing import EmbeddedServer
from twisted_mq.testing.reactor_thread import shared_thread
from twisted_mq.testing.server import NotConsumed

ENCRYPTED = """
import sys
from twisted_mq.blocking import ClientOptions, Message, Producer
from twisted_mq.config.tls_options import TlsMode
from twisted_mq.testing import EmbeddedServer

certificate, key, authority = sys.argv[1:]
tls = {"tls_server_mode": TlsMode.ENFORCING, "tls_server_cert_path": certificate, "tls_server_key_path": key}
own = {"tls_client_auth_server": True, "tls_client_trust_cert_path": authority}
options = ClientOptions(tls_enable=True, tls_trust_cert_path=authority)
with EmbeddedServer(broker_options={**tls, **own}, namesrv_options=tls) as server:
    with Producer(server.namesrv, group="g", client_options=options) as producer:
        print(producer.send(Message("T", b"x" * 100_000)).status.name, "twisted.internet.reactor" in sys.modules)
"""

FROM_FIRST = ConsumerOptions(consume_from_where=ConsumeFromWhere.FIRST_OFFSET)


@pytest.fixture(scope="module", params=["file", "memory"])
def server(request: pytest.FixtureRequest) -> Iterator[EmbeddedServer]:
    with EmbeddedServer(store=request.param) as server:
        yield server


@pytest.fixture
def topic(server: EmbeddedServer, request: pytest.FixtureRequest) -> str:
    return server.new_topic(request.node.name)


def bodies(server: EmbeddedServer, topic: str) -> list[bytes]:
    return [message.body for message in server.messages(topic)]


class Group:
    """A consumer on the server's reactor whose listener gives these answers, one after the other, then the last."""

    def __init__(self, server: EmbeddedServer, topic: str, *answers: ConsumeStatus, **options: int) -> None:
        self.name = f"group-of-{topic}"
        self._answers = list(answers)
        self._thread = shared_thread()
        settings = ConsumerOptions(consume_from_where=ConsumeFromWhere.FIRST_OFFSET, **options)
        self._consumer = PushConsumer(self._thread.reactor, self.name, server.namesrv, options=settings)
        self._consumer.subscribe(topic)
        self._consumer.listen(self._listen)

    def _listen(self, messages: object, context: object) -> ConsumeStatus:
        return self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]

    def __enter__(self) -> Group:
        self._thread.wait_for(self._consumer.start)
        return self

    def __exit__(self, *error: object) -> None:
        self._thread.wait_for(self._consumer.stop)


def test_topics_have_names_of_their_own_that_brokers_take(server: EmbeddedServer) -> None:
    first, second = server.new_topic("test_a[x/1]"), server.new_topic("test_a[x/1]")
    assert first.startswith("test_a-x-1-")
    assert first != second


def test_messages_are_shown_in_the_order_of_their_storing(server: EmbeddedServer, topic: str) -> None:
    for number in range(40):
        server.send(Message(topic, b"%d" % number))
    assert bodies(server, topic) == [b"%d" % number for number in range(40)]


def test_a_topic_without_messages_has_none(server: EmbeddedServer, topic: str) -> None:
    assert (server.messages(topic), server.dead_letters("nobody")) == ([], [])


def test_wait_returns_when_the_group_has_taken_all(server: EmbeddedServer, topic: str) -> None:
    with Group(server, topic, ConsumeStatus.CONSUME_SUCCESS) as group:
        for body in (b"one", b"two"):
            server.send(Message(topic, body))
        server.send_and_wait(Message(topic, b"three"), group.name, timeout=30)
        server.wait_until_consumed(topic, group.name, timeout=0)


def test_wait_says_what_is_left(server: EmbeddedServer, topic: str) -> None:
    queue = server.send(Message(topic, b"x")).queue
    with pytest.raises(NotConsumed) as caught:
        server.wait_until_consumed(topic, "sleepers", timeout=0)
    left = f"{{{queue.queue_id}: 1}}"
    assert str(caught.value) == f"sleepers has not consumed {topic} after 0 s, left by queue: {left}"


def test_a_wait_that_stops_an_event_loop_says_so(server: EmbeddedServer, topic: str) -> None:
    server.send(Message(topic, b"x"))

    async def wait() -> None:
        server.wait_until_consumed(topic, "sleepers", timeout=0)

    with pytest.raises(NotConsumed, match=r"was blocked during the wait: use await asyncio\.to_thread"):
        asyncio.run(wait())


def test_what_is_refused_too_often_is_a_dead_letter(server: EmbeddedServer, topic: str) -> None:
    with Group(server, topic, ConsumeStatus.RECONSUME_LATER, max_reconsume_times=0) as group:
        server.send_and_wait(Message(topic, b"poison"), group.name, timeout=30)
        assert [message.body for message in server.dead_letters(group.name)] == [b"poison"]


def test_messages_outlive_a_restart_of_the_broker(server: EmbeddedServer, topic: str) -> None:
    server.send(Message(topic, b"before"))
    before = server.broker
    server.restart_broker()
    assert server.broker == before
    server.send(Message(topic, b"after"))
    assert bodies(server, topic) == [b"before", b"after"]


# faults


def response_code(caught: pytest.ExceptionInfo[SendFailed]) -> int:
    cause = caught.value.__cause__
    assert isinstance(cause, BrokerError)
    return cause.response_code


def test_a_busy_broker_refuses_sends_until_the_block_ends(server: EmbeddedServer, topic: str) -> None:
    with server.busy() as fault, pytest.raises(SendFailed) as caught:
        server.send(Message(topic, b"refused"))
    assert response_code(caught) == ResponseCode.SYSTEM_BUSY
    assert fault.count > 3
    server.send(Message(topic, b"taken"))
    assert bodies(server, topic) == [b"taken"]


def test_a_broker_that_is_busy_twice_takes_the_third_attempt(server: EmbeddedServer, topic: str) -> None:
    with server.busy(times=2) as fault:
        server.send(Message(topic, b"x"))
    assert (fault.count, bodies(server, topic)) == (2, [b"x"])


def test_a_full_disk_refuses_messages_and_gives_out_those_there_are(server: EmbeddedServer, topic: str) -> None:
    server.send(Message(topic, b"before"))
    with server.full_disk():
        with pytest.raises(SendFailed) as caught:
            server.send(Message(topic, b"refused"))
        assert response_code(caught) == ResponseCode.SERVICE_NOT_AVAILABLE
        with Group(server, topic, ConsumeStatus.CONSUME_SUCCESS) as group:
            server.wait_until_consumed(topic, group.name, timeout=30)
    server.send(Message(topic, b"after"))
    assert bodies(server, topic) == [b"before", b"after"]


def test_a_lost_connection_makes_the_producer_send_again_what_is_stored(server: EmbeddedServer, topic: str) -> None:
    with server.losing_connections(times=1):
        result = server.send(Message(topic, b"x"))
    stored = server.messages(topic)
    assert [(message.body, message.unique_key) for message in stored] == [(b"x", result.msg_id)] * 2


def test_a_broker_slow_for_one_answer_takes_the_send(server: EmbeddedServer, topic: str) -> None:
    with server.slow(0.05, times=1) as fault:
        server.send(Message(topic, b"x"))
    assert (fault.count, bodies(server, topic)) == (1, [b"x"])


# life


def test_files_lie_where_it_says_and_go_with_it() -> None:
    with EmbeddedServer() as server:
        assert os.path.isdir(os.path.join(server.store_path, "commitlog"))
        path = server.store_path
    assert not os.path.exists(path)


def test_a_store_in_memory_has_no_log() -> None:
    with EmbeddedServer(store="memory") as server:
        server.send(Message(server.new_topic(), b"x"))
        assert not os.path.exists(os.path.join(server.store_path, "commitlog"))


def test_what_is_no_kind_of_store_is_named() -> None:
    with pytest.raises(ValueError, match='store must be "file" or "memory", got \'disk\''):
        EmbeddedServer(store="disk")  # type: ignore[arg-type]


ALONE = """
import os
import sys
from twisted_mq.testing import EmbeddedServer
server = EmbeddedServer(store=sys.argv[1]).start()
assert "twisted.internet.reactor" not in sys.modules
print(server.namesrv, server.broker, flush=True)
child = os.fork()
if child:
    os.waitpid(child, 0)
    print(os.path.isdir(server.store_path))
"""


@pytest.mark.parametrize("store", ["file", "memory"])
def test_a_process_ends_whose_server_was_not_stopped_and_chose_no_reactor(tmp_path: Path, store: str) -> None:
    """Its files go with it, not with a child that ends before it."""
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", ALONE, store], capture_output=True, text=True, timeout=60, env=environment
    )
    assert (done.returncode, done.stdout.count("127.0.0.1:")) == (0, 2), done.stderr
    assert done.stdout.endswith("True\n")
    assert os.listdir(tmp_path) == []


def test_encrypted_servers_answer_in_a_program_whose_default_reactor_never_runs(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    files = authority.issue("server")
    command = [sys.executable, "-c", ENCRYPTED, files.certificate, files.key, authority.path]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    complaints = [line for line in done.stderr.splitlines() if not line.startswith("long turn: ")]  # of a slow machine
    assert (done.stdout, complaints) == ("SEND_OK False\n", [])
