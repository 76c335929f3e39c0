"""Brokers, name servers and clients over TLS, each of a process's own kind on real sockets."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Any

from twisted.internet import defer, reactor
from twisted.internet.task import deferLater
from twisted.internet.utils import getProcessOutput
from twisted.trial.unittest import TestCase

from tests.support.certificates import Authority, Files
from twisted_mq.broker.options import BrokerOptions, BrokerRole
from twisted_mq.broker.service import BrokerService, make_broker
from twisted_mq.client import ClientOptions, Message, Producer
from twisted_mq.config.errors import ConfigError
from twisted_mq.encryption.clients import encrypted
from twisted_mq.encryption.settings import ClientSettings
from twisted_mq.namesrv.options import NamesrvOptions
from twisted_mq.namesrv.service import NamesrvService, make_namesrv
from twisted_mq.protocol.codes import RequestCode
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.remoting.client import RemotingClient, tcp_endpoint
from twisted_mq.remoting.errors import RemotingError

AUTHORITY: list[Authority] = []


def authority(case: TestCase) -> Authority:
    """Return the authority of all tests: keys take long to create."""
    if not AUTHORITY:
        AUTHORITY.append(Authority(Path(case.mktemp()).absolute()))
    return AUTHORITY[0]


class EncryptedCase(TestCase):
    timeout = 60

    def setUp(self) -> None:
        self.authority = authority(self)
        self.files = self.authority.issue("server")
        self.path = Path(self.mktemp())

    def tls(self, mode: str = "permissive", **more: Any) -> dict[str, Any]:
        """Settings of a server."""
        from twisted_mq.config.tls_options import TlsMode

        return {
            "tls_server_mode": TlsMode(mode),
            "tls_server_cert_path": self.files.certificate,
            "tls_server_key_path": self.files.key,
            **more,
        }

    def namesrv(self, **more: Any) -> NamesrvService:
        folder = Path(self.mktemp())
        server = make_namesrv(
            NamesrvOptions(
                bind_address="127.0.0.1",
                listen_port=0,
                kv_config_path=str(folder / "kvConfig.json"),
                config_store_path=str(folder / "namesrv.properties"),
                **more,
            ),
            reactor,
        )
        server.startService()
        self.addCleanup(server.stopService)
        return server

    async def broker(self, **more: Any) -> BrokerService:
        settings = {
            "broker_name": "b", "bind_address": "127.0.0.1", "broker_ip1": "127.0.0.1", "listen_port": 0,
            "namesrv_addr": "", "store_path_root_dir": self.mktemp(), "mapped_file_size_commit_log": 1 << 20,
            **more,
        }  # fmt: skip
        broker = make_broker(BrokerOptions(**settings), reactor)
        broker.startService()
        self.addCleanup(broker.stopService)
        await broker.started
        return broker

    def client(self, settings: ClientSettings | None) -> RemotingClient:
        connect = tcp_endpoint(reactor, 3)
        client = RemotingClient(
            reactor, connect=connect if settings is None else encrypted(connect, settings, time.time())
        )
        self.addCleanup(client.close)
        return client

    async def asked(self, port: int, settings: ClientSettings | None) -> int:
        """The code of an answer over a new connection."""
        client = self.client(settings)
        command = RemotingCommand.request(RequestCode.GET_ALL_TOPIC_CONFIG)
        try:
            return (await client.invoke(f"127.0.0.1:{port}", command)).code
        finally:
            await client.close()

    async def refused(self, port: int, settings: ClientSettings | None) -> str:
        try:
            code = await self.asked(port, settings)
        except RemotingError as error:
            return str(error)
        self.fail(f"answered with {code}")

    def trusting(self, **more: Any) -> ClientSettings:
        return ClientSettings(trust_cert_path=self.authority.path, **more)

    async def until(self, true: Any) -> None:
        while not await defer.maybeDeferred(true):
            await deferLater(reactor, 0.01)


class ServersTest(EncryptedCase):
    async def test_permissive_takes_both_on_one_port(self) -> None:
        broker = await self.broker(**self.tls())
        self.assertEqual(await self.asked(broker.port, None), 0)
        self.assertEqual(await self.asked(broker.port, self.trusting()), 0)
        self.assertEqual(await self.asked(broker.port, ClientSettings(auth_server=False)), 0)

    async def test_enforcing_closes_what_is_not_encrypted(self) -> None:
        broker = await self.broker(**self.tls("enforcing"))
        self.assertEqual(await self.asked(broker.port, self.trusting()), 0)
        self.assertIn("lost", await self.refused(broker.port, None))

    async def test_disabled_takes_no_handshake(self) -> None:
        broker = await self.broker()
        self.assertIn("lost", await self.refused(broker.port, self.trusting()))

    async def test_test_mode_needs_no_files(self) -> None:
        from twisted_mq.config.tls_options import TlsMode

        broker = await self.broker(tls_server_mode=TlsMode.ENFORCING, tls_test_mode_enable=True)
        self.assertEqual(await self.asked(broker.port, ClientSettings(auth_server=False)), 0)
        self.assertIn("certificate verify failed", await self.refused(broker.port, self.trusting(check_host=False)))
        self.assertIn("IPAddressMismatch", await self.refused(broker.port, self.trusting()))

    async def test_a_server_that_nobody_trusted_has_signed_is_refused(self) -> None:
        broker = await self.broker(**self.tls())
        self.assertIn("certificate verify failed", await self.refused(broker.port, ClientSettings()))

    async def test_mutual(self) -> None:
        from twisted_mq.config.tls_options import ClientAuth

        mutual = {
            "tls_server_need_client_auth": ClientAuth.REQUIRE,
            "tls_server_auth_client": True,
            "tls_server_trust_cert_path": self.authority.path,
        }
        broker = await self.broker(**self.tls("enforcing", **mutual))
        own = self.authority.issue("ada")
        other = Authority(Path(self.mktemp()).absolute(), "strangers").issue("eve")
        self.assertEqual(await self.asked(broker.port, self.trusting(cert_path=own.certificate, key_path=own.key)), 0)
        self.assertIn("lost", await self.refused(broker.port, self.trusting()))
        eve = self.trusting(cert_path=other.certificate, key_path=other.key)
        self.assertIn("lost", await self.refused(broker.port, eve))

    async def test_a_renewed_certificate_counts_without_a_restart_a_damaged_one_does_not(self) -> None:
        broker = await self.broker(**self.tls())
        encryption = broker._parts.encryption
        assert encryption is not None
        renewing = Authority(Path(self.mktemp()).absolute(), "renewing")
        new = renewing.issue("new")
        trusting = ClientSettings(trust_cert_path=renewing.path)
        self.assertIn("certificate verify failed", await self.refused(broker.port, trusting))
        Path(self.files.certificate).write_text("garbage")
        encryption.look()
        self.assertEqual(await self.asked(broker.port, self.trusting()), 0)
        self._replace(new)
        encryption.look()
        self.assertEqual(await self.asked(broker.port, trusting), 0)

    def _replace(self, new: Files) -> None:
        for old, path in ((self.files.certificate, new.certificate), (self.files.key, new.key)):
            os.replace(path, old)

    async def test_large_answers_and_many_requests_pass(self) -> None:
        broker = await self.broker(**self.tls(), max_unsent_bytes_by_channel=1 << 20)
        client = self.client(self.trusting())
        address = f"127.0.0.1:{broker.port}"
        fields = {
            "a": "P",
            "b": "T",
            "c": "TBW102",
            "d": "1",
            "e": "0",
            "f": "0",
            "g": "1",
            "h": "0",
            "i": "",
            "j": "0",
        }
        sends = [
            client.invoke(address, RemotingCommand.request(RequestCode.SEND_MESSAGE_V2, dict(fields), b"x" * 1000), 30)
            for _ in range(500)
        ]
        answers = await defer.gatherResults(sends)
        self.assertEqual(sorted(int(one.ext_fields["queueOffset"]) for one in answers), list(range(500)))

    def test_a_broker_with_a_bad_certificate_does_not_start_and_leaves_nothing_open(self) -> None:
        options = BrokerOptions(
            bind_address="127.0.0.1",
            listen_port=0,
            store_path_root_dir=self.mktemp(),
            **self.tls(tls_server_key_path="/nowhere"),
        )
        error = self.assertRaises(ConfigError, make_broker(options, reactor).startService)
        self.assertEqual(str(error), "tls.server.keyPath=/nowhere: No such file or directory")


class TogetherTest(EncryptedCase):
    async def test_a_broker_registers_and_a_producer_sends_with_everything_encrypted(self) -> None:
        client = {"tls_client_auth_server": True, "tls_client_trust_cert_path": self.authority.path}
        namesrv = self.namesrv(**self.tls("enforcing"))
        broker = await self.broker(**self.tls("enforcing", **client), namesrv_addr=f"127.0.0.1:{namesrv.port}")
        options = ClientOptions(tls_enable=True, tls_trust_cert_path=self.authority.path)
        producer = Producer(reactor, "P", f"127.0.0.1:{namesrv.port}", client_options=options)
        await producer.start()
        self.addCleanup(producer.stop)
        result = await producer.send(Message("T", b"secret"))
        self.assertEqual((result.status.name, result.queue_offset), ("SEND_OK", 0))
        self.assertEqual(broker.controller.store.max_physical_offset() > 0, True)

    async def test_an_asyncio_program_sends_encrypted_without_the_default_reactor(self) -> None:
        namesrv = self.namesrv(**self.tls("enforcing"))
        client = {"tls_client_auth_server": True, "tls_client_trust_cert_path": self.authority.path}
        await self.broker(**self.tls("enforcing", **client), namesrv_addr=f"127.0.0.1:{namesrv.port}")
        program = """
import asyncio, sys
from twisted_mq.aio import ClientOptions, Message, Producer

async def main(namesrv, authority):
    options = ClientOptions(tls_enable=True, tls_trust_cert_path=authority)
    async with Producer(namesrv, group="P", client_options=options) as producer:
        print((await producer.send(Message("T", b"secret"))).status.name, "twisted.internet.reactor" in sys.modules)

asyncio.run(main(*sys.argv[1:]))
"""
        arguments = ["-c", program, f"127.0.0.1:{namesrv.port}", self.authority.path]
        said = await getProcessOutput(sys.executable, arguments, os.environ, errortoo=True)
        self.assertEqual(said, b"SEND_OK False\n")

    async def test_a_slave_copies_over_an_encrypted_link(self) -> None:
        link = {"ha_tls": True, "ha_shared_secret": "planted-secret-of-links"}
        master = await self.broker(**self.tls(), **link, broker_role=BrokerRole.SYNC_MASTER)
        slave = await self.broker(
            **self.tls(), **link, broker_role=BrokerRole.SLAVE, broker_id=1,
            ha_master_address=master.controller.ha.address,
        )  # fmt: skip
        await self.until(lambda: bool(master.controller.ha.accept.acknowledged_offsets()))
        fields = {
            "a": "P",
            "b": "T",
            "c": "TBW102",
            "d": "1",
            "e": "0",
            "f": "0",
            "g": "1",
            "h": "0",
            "i": "",
            "j": "0",
        }
        client = self.client(None)
        command = RemotingCommand.request(RequestCode.SEND_MESSAGE_V2, fields, b"x" * 100_000)
        answer = await client.invoke(f"127.0.0.1:{master.port}", command, 20)
        self.assertEqual((answer.code, answer.remark), (0, None))
        end = master.controller.store.max_physical_offset()
        await self.until(lambda: slave.controller.store.max_physical_offset() == end)
        self.assertGreater(end, 100_000)
