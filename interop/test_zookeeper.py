"""The coordinator on Apache's ZooKeeper: the contract, and what only real servers do."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from interop.peers.requirements import require_java
from interop.peers.zookeeper import ZooKeeperServer
from tests.twisted_mq.coordination import kazoo_case

pytestmark = pytest.mark.peer


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZooKeeperServer]:
    require_java()
    server = ZooKeeperServer(tmp_path_factory.mktemp("zookeeper"))
    server.start()
    try:
        server.wait_serving()
        yield server
    finally:
        server.kill()


@pytest.fixture(scope="class")
def server_of_class(request: pytest.FixtureRequest, server: ZooKeeperServer) -> None:
    request.cls.server_port = server.port


@pytest.mark.usefixtures("server_of_class")
class ZooKeeperContractCase(kazoo_case.KazooContract):
    pass
