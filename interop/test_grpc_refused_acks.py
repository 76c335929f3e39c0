"""The gRPC push consumers where the broker's store refuses acknowledgements for a while: nothing is lost, and all go on.

The store takes some records for each second only. So it takes some acknowledgements of messages that were received together, and
refuses the others until the messages come again. Apache's servers answer with success to all of them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from interop.peers.clients import Producer, PushConsumer, bodies
from interop.peers.grpc_peers.clients import CLIENTS
from interop.peers.grpc_peers.proxies import GrpcServers, servers_at
from interop.peers.grpc_peers.scenarios import Stage
from interop.peers.process import wait_until
from interop.peers.servers import running
from twisted_mq.blocking import Admin
from twisted_mq.protocol.errors import BrokerError

pytestmark = pytest.mark.peer

QUICK = {"defaultInvisibleTimeMills": 10_000, "renewAheadTimeMillis": 4_000, "renewSchedulePeriodMillis": 1_000}
MESSAGES = 16
"""The number of messages for each client in a round."""
ROUNDS = 8
"""The store counts a record some time after it took it: acknowledgements of one round may all find room."""
RECORDS_OF_SECOND = 4
"""More are refused at random, and all beyond twice as many."""
REFUSED = "revive log not written"
SECONDS = 240.0


@pytest.fixture(params=["ours local", "ours before ours"])
def servers(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[GrpcServers]:
    servers = servers_at(request.param, tmp_path / "servers")
    file = tmp_path / "quick.json"
    file.write_text(json.dumps(QUICK))
    servers.settings = {"timerCongestNumEachSlot": RECORDS_OF_SECOND, "proxyConfigPath": file}
    servers.proxy_settings = QUICK
    with running(servers) as servers:
        yield servers


def test_consumers_take_everything_and_end_with_nothing_in_flight(servers: GrpcServers, tmp_path: Path) -> None:
    with ExitStack() as stack:
        admin = stack.enter_context(Admin(servers.name_server))
        stages: list[tuple[str, Stage, str]] = []
        for name, client in CLIENTS.items():
            peer = client.start(servers.address, tmp_path)
            stack.callback(peer.close)
            stage = Stage(client, peer, admin)
            stack.callback(stage.stop)
            stages.append((name, stage, stage.topic()))
        producers = [(stage.producer(topic), topic) for _, stage, topic in stages]
        expected = send_round(producers, 0)
        consumers: dict[str, tuple[PushConsumer, str]] = {}
        for name, stage, topic in stages:  # all messages are there: each consumer receives many in one second
            group = stage.group()
            consumers[name] = stage.push(group, topic), group
        for number in range(1, ROUNDS):
            for consumer, _ in consumers.values():
                consumer.wait_bodies(expected, SECONDS)
            if REFUSED in servers.broker_process.output():
                break
            expected |= send_round(producers, number)
        else:
            pytest.fail(f"the store refused no acknowledgement in {ROUNDS} rounds")

        def held() -> dict[str, int]:
            return {name: in_flight(admin, group, one.topic) for name, (one, group) in consumers.items()}

        wait_until(lambda: not any(held().values()), lambda: f"nothing is in flight; {held()}", SECONDS)
        assert all(set(bodies(consumer.messages)) == expected for consumer, _ in consumers.values())


def send_round(producers: Iterable[tuple[Producer, str]], number: int) -> set[str]:
    """Send some messages to each topic and return their bodies."""
    sent = {f"body {number} {message}" for message in range(MESSAGES)}
    for producer, topic in producers:
        for body in sent:
            producer.send(topic, body)
    return sent


def in_flight(admin: Admin, group: str, topic: str) -> int:
    """Return how many messages a group holds, with those that came again."""
    try:
        lags = admin.lag(group)
    except BrokerError:  # no retry topic: nothing came again
        lags = admin.lag(group, topic)
    return sum(one.in_flight for one in lags)
