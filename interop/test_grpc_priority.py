"""Apache's gRPC client for Python, which sets priorities, at our broker and at our proxy: the highest is received first.

Apache's own broker serves priorities since 5.4, which is no peer here.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from interop.peers.grpc_peers.clients import CLIENTS
from interop.peers.grpc_peers.proxies import GrpcServers, servers_at
from interop.peers.grpc_peers.scenarios import Stage
from interop.peers.process import wait_until
from interop.peers.servers import running
from twisted_mq.blocking import Admin

pytestmark = pytest.mark.peer

CLIENT = CLIENTS["python-5.1.2"]
PRIORITIES = (1, 7, 0, 4, 7, 2)


@pytest.fixture(params=["ours local", "ours before ours"])
def servers(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[GrpcServers]:
    CLIENT.require()
    with running(servers_at(request.param, tmp_path_factory.mktemp("grpc-priority") / "servers")) as servers:
        yield servers


def test_client_receives_the_highest_priority_first(
    servers: GrpcServers, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with ExitStack() as stack:
        admin = stack.enter_context(Admin(servers.name_server))
        peer = CLIENT.start(servers.address, tmp_path_factory.mktemp("client"))
        stack.callback(peer.close)
        stage = Stage(CLIENT, peer, admin)
        admin.create_topic("Urgent", queues=8, attributes={"message.type": "PRIORITY"})
        group, producer = stage.group(), stage.producer("Urgent")
        for priority in PRIORITIES:
            producer.send("Urgent", f"priority {priority}", priority=priority)
        consumer = stage.simple(group, "Urgent")
        received: list[tuple[str, int]] = []

        def complete() -> bool:
            for message in consumer.receive():
                received.append((message["body"], message["priority"]))
                consumer.ack(message)
            return len(received) >= len(PRIORITIES)

        wait_until(complete, lambda: f"all messages; so far {received}")
        assert received == [(f"priority {one}", one) for one in sorted(PRIORITIES, reverse=True)]
        stage.stop()
