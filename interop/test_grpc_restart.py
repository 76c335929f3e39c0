"""All gRPC clients send and consume while the broker is killed and comes back: nothing that was acknowledged is missing."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import attrs
import pytest

from interop.peers.clients import Producer, PushConsumer, bodies
from interop.peers.grpc_peers.clients import CLIENTS
from interop.peers.grpc_peers.proxies import GrpcServers, servers_at
from interop.peers.grpc_peers.scenarios import Stage
from interop.peers.line_peer import PeerError
from interop.peers.process import wait_until
from interop.peers.servers import running
from twisted_mq.blocking import Admin

pytestmark = pytest.mark.peer

PAUSE_SECONDS = 0.05
MESSAGES = 30
"""Acknowledged before the kill, and once more after it."""


@attrs.define(eq=False)
class Load:
    """Load of one client: a producer that sends until it is stopped, and a push consumer."""

    producer: Producer
    consumer: PushConsumer
    acknowledged: list[str] = attrs.field(factory=list)
    refused: int = 0

    def run(self, ended: threading.Event) -> None:
        """Send one message after the other, each again until it is acknowledged."""
        while not ended.wait(PAUSE_SECONDS):
            body = f"body {len(self.acknowledged)}"
            try:
                self.producer.send(self.consumer.topic, body)
            except PeerError:
                self.refused += 1
                continue
            self.acknowledged.append(body)


@pytest.fixture(params=["ours local", "ours before ours"])
def servers(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[GrpcServers]:
    with running(servers_at(request.param, tmp_path_factory.mktemp("grpc-restart") / "servers")) as servers:
        yield servers


def test_clients_go_on_after_the_broker_was_killed(servers: GrpcServers) -> None:
    ended = threading.Event()
    with ExitStack() as stack:
        admin = stack.enter_context(Admin(servers.name_server))
        pool = stack.enter_context(ThreadPoolExecutor(len(CLIENTS)))
        loads = dict(zip(CLIENTS, pool.map(lambda name: _load(stack, servers, admin, name), CLIENTS), strict=True))
        stack.callback(ended.set)
        sending = [pool.submit(load.run, ended) for load in loads.values()]
        _wait_each(loads, 0)
        servers.kill_broker()
        killed_at = {name: len(load.acknowledged) for name, load in loads.items()}
        time.sleep(1)  # clients meet a broker that is away
        servers.start_broker()
        _wait_each(loads, max(killed_at.values()))
        ended.set()
        for one in sending:
            one.result()
        for load in loads.values():
            load.consumer.wait(lambda messages, load=load: set(load.acknowledged) <= set(bodies(messages)))


def _load(stack: ExitStack, servers: GrpcServers, admin: Admin, name: str) -> Load:
    peer = CLIENTS[name].start(servers.address, servers.directory)
    stack.callback(peer.close)
    stage = Stage(CLIENTS[name], peer, admin)
    topic, group = stage.topic(), stage.group()
    return Load(stage.producer(topic), stage.push(group, topic))


def _wait_each(loads: dict[str, Load], before: int) -> None:
    """Wait until each client had so many messages acknowledged, and MESSAGES more."""
    wait_until(
        lambda: all(len(load.acknowledged) >= before + MESSAGES for load in loads.values()),
        lambda: (
            f"{before} + {MESSAGES} sends of each: { {name: len(load.acknowledged) for name, load in loads.items()} }"
        ),
    )
