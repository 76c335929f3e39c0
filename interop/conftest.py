"""Fixtures of the peer tests: the two kinds of servers, and the clients that test them.

`cluster` has session scope and two values, so pytest runs every scenario against Apache's servers first, stops them,
and then runs the same scenarios against this project's. One virtual machine serves all Java clients of the run.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.register_assert_rewrite("interop.peers.grpc_peers.scenarios")

from interop.peers.clients import Clients, CppPeer, JavaPeer, OurPeer, unique
from interop.peers.requirements import require_cpp_client, require_java
from interop.peers.servers import CLUSTER_NAME, COMMANDS, Cluster, running


@pytest.fixture(scope="session", params=list(COMMANDS))
def cluster(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with running(Cluster(request.param, tmp_path_factory.mktemp(request.param))) as servers:
        yield servers


@pytest.fixture(scope="session")
def java(tmp_path_factory: pytest.TempPathFactory) -> Iterator[JavaPeer]:
    require_java()
    peer = JavaPeer(tmp_path_factory.mktemp("java"))
    yield peer
    peer.close()


@pytest.fixture
def java_clients(java: JavaPeer, cluster: Cluster) -> Iterator[Clients]:
    clients = Clients(java, cluster.name_server)
    yield clients
    clients.stop()


@pytest.fixture(scope="session")
def our_client_process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OurPeer]:
    peer = OurPeer(tmp_path_factory.mktemp("ours"))
    yield peer
    peer.close()


@pytest.fixture
def our_clients(our_client_process: OurPeer, cluster: Cluster) -> Iterator[Clients]:
    clients = Clients(our_client_process, cluster.name_server)
    yield clients
    clients.stop()


@pytest.fixture
def cpp_clients(cluster: Cluster, tmp_path: Path) -> Iterator[Clients]:
    require_cpp_client()
    peer = CppPeer(tmp_path)
    yield Clients(peer, cluster.name_server)
    peer.close()


@pytest.fixture
def topic(java: JavaPeer, cluster: Cluster) -> str:
    """A new topic of four queues, made by mqadmin."""
    cluster.wait_registered()
    name = unique("Topic")
    printed = java.mqadmin(
        "updateTopic", "-n", cluster.name_server, "-c", CLUSTER_NAME, "-t", name, "-r", "4", "-w", "4"
    )
    assert f"create topic to {cluster.broker} success." in printed
    cluster.wait_route(name)
    return name


@pytest.fixture
def group() -> str:
    return unique("Group")
