"""A console with a certificate: encrypted connections alone, a cookie that leaves on no others, and damaged files."""

from __future__ import annotations

from pathlib import Path

from twisted.internet import ssl
from twisted.web.client import Agent, BrowserLikePolicyForHTTPS, ResponseFailed

from tests.support.certificates import Authority, Files
from tests.twisted_mq.console.browser import ConsoleCase, reactor
from twisted_mq.client import ClientOptions
from twisted_mq.config.errors import ConfigError
from twisted_mq.config.tls_options import TlsMode
from twisted_mq.console.service import ConsoleService
from twisted_mq.console.settings import ConsoleSettings, OwnCertificate


class Encrypted(ConsoleCase):
    async def setUp(self) -> None:
        self.authority = Authority(Path(self.mktemp()))
        own = self.authority.issue("console", password="of the key")
        self.console_options = {"certificate": OwnCertificate(own.certificate, own.key, "of the key")}
        await super().setUp()
        trusted = ssl.Certificate.loadPEM(Path(self.authority.path).read_bytes())
        self.agent = Agent(reactor, BrowserLikePolicyForHTTPS(ssl.trustRootFromCertificates([trusted])), pool=self.pool)

    async def test_people_come_in_and_the_cookie_leaves_on_encrypted_connections_alone(self) -> None:
        self.assertTrue(self.invitations[0].startswith(f"https://127.0.0.1:{self.console.port}/login#"))
        reply = await self.log_in()
        attributes = (reply.header("set-cookie") or "").split("; ")[1:]
        self.assertEqual(attributes, ["Path=/", "Secure", "HttpOnly", "SameSite=strict"])
        key = (await self.get("/")).form_key
        form = {"form_key": key, "name": "Made", "read_queues": 1, "write_queues": 1, "perm": 6}
        made = await self.post("/topics/create", form, origin=self.console.url.rstrip("/"))
        self.assertEqual((made.status, "Made" in self.cluster.broker.controller.topics.topics), (303, True))
        ended = await self.post("/logout", {"form_key": key})
        self.assertIn("; Secure;", ended.header("set-cookie") or "")

    async def test_a_request_that_is_not_encrypted_gets_nothing(self) -> None:
        plain = Agent(reactor, pool=self.pool)
        with self.assertRaises(ResponseFailed):
            await plain.request(b"GET", b"http://127.0.0.1:%d/login" % self.console.port)

    async def test_certificates_that_cannot_be_shown_are_named_with_their_option(self) -> None:
        good, other = self.authority.issue("good"), self.authority.issue("other")
        expired, garbage = self.authority.issue("expired", days=(-3, -1)), Path(self.mktemp())
        garbage.write_text("no PEM")
        for files, fault in (
            (expired, f"--console-tls-cert={expired.certificate}: the certificate expired at"),
            (Files(str(garbage), good.key), f"--console-tls-cert={garbage}: no certificate in PEM format"),
            (Files(good.certificate, str(garbage)), f"--console-tls-key={garbage}: no private key in PEM format"),
            (Files(good.certificate, other.key), f"--console-tls-key={other.key}: this is not the key of"),
            (Files(good.certificate, "nowhere"), "--console-tls-key=nowhere: No such file"),
        ):
            settings = ConsoleSettings(("h:1",), port=0, certificate=OwnCertificate(files.certificate, files.key))
            with self.assertRaisesRegex(ConfigError, fault):
                ConsoleService(settings, reactor, print)


class EncryptedServers(ConsoleCase):
    """Name server and broker take encrypted connections alone."""

    async def setUp(self) -> None:
        authority = Authority(Path(self.mktemp()))
        files = authority.issue("server")
        self.namesrv_options = {
            "tls_server_mode": TlsMode.ENFORCING,
            "tls_server_cert_path": files.certificate,
            "tls_server_key_path": files.key,
        }
        own = {"tls_client_auth_server": True, "tls_client_trust_cert_path": authority.path}
        self.broker_options = {**self.namesrv_options, **own}
        options = ClientOptions(tls_enable=True, tls_trust_cert_path=authority.path)
        self.console_options = {"client_options": options}
        await super().setUp()

    async def test_servers_that_take_encrypted_connections_alone_are_shown(self) -> None:
        await self.log_in()
        page = await self.get("/broker", address=self.cluster.broker_address)
        self.assertIn("tls.server.mode enforcing", page.words)
