"""Apache's proxy in cluster mode before our broker with access control: the proxy's own account is what the broker sees."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from interop.peers.grpc_peers.clients import CLIENTS
from interop.peers.grpc_peers.proxies import GrpcServers, apache_proxy
from interop.peers.grpc_peers.scenarios import Stage, normal, transaction
from interop.peers.requirements import require_java
from interop.peers.servers import running
from interop.test_access import ROOT, SETTINGS
from twisted_mq.blocking import Admin, ClientOptions

pytestmark = pytest.mark.peer

CLIENT = CLIENTS["python-5.1.2"]


class ProxyWithAccount(GrpcServers):
    """The proxy signs with an account that its tools.yml names."""

    def start_broker(self) -> None:
        super().start_broker()
        account = self.directory / "home" / "conf" / "tools.yml"
        account.parent.mkdir()
        account.write_text(f"accessKey: {ROOT['access_key']}\nsecretKey: {ROOT['secret_key']}\n")


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    require_java()
    servers = ProxyWithAccount(
        "ours",
        tmp_path / "servers",
        settings=SETTINGS,
        proxy=apache_proxy,
        proxy_settings={"enableAclRpcHookForClusterMode": True},
    )
    with running(servers), Admin(servers.name_server, options=ClientOptions(**ROOT)) as admin:
        peer = CLIENT.start(servers.address, tmp_path)
        yield Stage(CLIENT, peer, admin)
        peer.close()


def test_messages_and_transactions_pass_with_the_settings_of_the_broker_as_they_are(stage: Stage) -> None:
    normal(stage)
    transaction(stage)
