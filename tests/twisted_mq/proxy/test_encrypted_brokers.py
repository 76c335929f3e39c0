"""A proxy in front of name server and broker that take encrypted connections alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from twisted.internet.task import deferLater
from twisted.internet.threads import deferToThread

from tests.support.certificates import Authority
from tests.support.grpc_client import GrpcClient, code
from tests.twisted_mq.encryption import test_encrypted_servers as encrypted
from twisted_mq.protocol.bodies import TopicConfig
from twisted_mq.proxy.cluster_service import ProxyService
from twisted_mq.proxy.options import ProxyServiceOptions

TOPIC = "Orders"


class EncryptedBrokersTests(encrypted.EncryptedCase):
    async def proxy(self, **settings: Any) -> ProxyService:
        namesrv = self.namesrv(**self.tls("enforcing"))
        address = f"127.0.0.1:{namesrv.port}"
        broker = await self.broker(**self.tls("enforcing", tls_enable=True, namesrv_addr=address))
        broker.controller.topics.update([TopicConfig(TOPIC, 1, 1)])
        while TOPIC not in namesrv.routes.topics:
            await deferLater(encrypted.reactor, 0.02)
        options = ProxyServiceOptions(bind_address="127.0.0.1", grpc_server_port=0, namesrv_addr=address, **settings)
        proxy = ProxyService(options, encrypted.reactor)
        proxy.startService()
        self.addCleanup(proxy.stopService)
        return proxy

    async def sent(self, proxy: ProxyService) -> str:
        client = GrpcClient(f"127.0.0.1:{proxy.port}")
        self.addCleanup(client.__exit__, None, None, None)
        return code(await deferToThread(client.send, TOPIC, b"x"))

    async def test_requests_of_clients_are_encrypted_on_their_way(self) -> None:
        proxy = await self.proxy(tls_enable=True)
        self.assertEqual(await self.sent(proxy), "OK")

    async def test_certificates_that_are_checked_have_to_be_signed(self) -> None:
        checks = {"tls_enable": True, "tls_client_auth_server": True}
        proxy = await self.proxy(**checks, tls_client_trust_cert_path=self.authority.path)
        self.assertEqual(await self.sent(proxy), "OK")
        stranger = Authority(Path(self.mktemp()).absolute())
        proxy = await self.proxy(**checks, tls_client_trust_cert_path=stranger.path)
        self.assertNotEqual(await self.sent(proxy), "OK")

    async def test_plain_requests_reach_nothing(self) -> None:
        proxy = await self.proxy()
        self.assertNotEqual(await self.sent(proxy), "OK")
