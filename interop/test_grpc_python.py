"""Apache's Python client of 5.x (gRPC) against a broker's own gRPC port, and against a proxy in front of it."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from interop.peers import grpc_clients
from tests.support.proxied_server import MODES
from twisted_mq.protocol.bodies import TopicConfig
from twisted_mq.testing import EmbeddedServer

pytestmark = pytest.mark.peer

Run = Callable[..., Any]
COUNT = 10


@pytest.fixture(scope="module", params=list(MODES))
def server(request: pytest.FixtureRequest) -> Iterator[EmbeddedServer]:
    grpc_clients.require_python_client()
    with MODES[request.param]() as server:
        yield server


@pytest.fixture
def run(server: EmbeddedServer, tmp_path: Path) -> Run:
    """Runs a scenario of the program."""
    return functools.partial(grpc_clients.run, tmp_path, server.grpc)


def test_simple_consumer_gets_what_is_sent(server, run):
    topic = server.new_topic("simple")
    got = run("simple", topic, "simple-group")
    assert len(got["sent"]) == COUNT
    assert got["received"] == {
        message_id: [f"body {number}", "a" if number % 2 else "b", [f"key-{number}"], {"number": str(number)}, 1]
        for number, message_id in enumerate(got["sent"])
    }
    server.wait_until_consumed(topic, "simple-group", timeout=30)


def test_push_consumer_gets_what_is_sent(server, run):
    topic = server.new_topic("push")
    assert run("push", topic, "push-group") == sorted(f"body {number}" for number in range(COUNT))


def test_committed_transaction_is_seen_and_one_rolled_back_is_not(server, run):
    topic = server.new_topic("transaction")
    config = TopicConfig(topic, 4, 4, attributes={"message.type": "TRANSACTION"})
    server._thread.call(lambda: server._controller.topics.update([config]))
    run("transaction", topic, "none")
    assert [one.body for one in server.messages(topic)] == [b"committed"]
