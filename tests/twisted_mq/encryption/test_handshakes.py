"""Handshakes that a stranger repeats: a second one inside a connection is refused at every port, and no session is resumed.

A renegotiation costs the server a signature and the peer next to nothing. A resumed session would skip the check of the
peer's certificate.
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable
from typing import Any

from OpenSSL import SSL
from twisted.internet import reactor
from twisted.internet.threads import deferToThread

from tests.fuzz.http2 import PREFACE
from tests.twisted_mq.encryption.test_encrypted_servers import EncryptedCase
from twisted_mq.console.service import ConsoleService
from twisted_mq.console.settings import ConsoleSettings, OwnCertificate
from twisted_mq.protocol.codes import RequestCode
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.protocol.wire.framing import encode_frame

PATIENCE_SECONDS = 10.0
TIMES = 20
ASKED = encode_frame(RemotingCommand(RequestCode.GET_BROKER_CONFIG, language="JAVA"))
LISTED = encode_frame(RemotingCommand(RequestCode.GET_BROKER_CLUSTER_INFO, language="JAVA"))
PAGE = b"GET /login HTTP/1.1\r\nhost: a\r\n\r\n"


def renegotiated(port: int, question: bytes) -> tuple[bool, int]:
    """Return True if a connection serves, and the number of its handshakes after the first."""
    context = SSL.Context(SSL.TLS_CLIENT_METHOD)
    context.set_max_proto_version(SSL.TLS1_2_VERSION)
    plain = socket.create_connection(("127.0.0.1", port), PATIENCE_SECONDS)
    plain.settimeout(None)
    connection = SSL.Connection(context, plain)
    connection.set_connect_state()
    with plain:
        connection.do_handshake()
        serves, done = _asked(connection, question), 0
        while done < TIMES:
            try:
                connection.renegotiate()
                connection.do_handshake()
            except SSL.Error:
                break
            done += 1
        return serves, done


def _asked(connection: SSL.Connection, question: bytes) -> bool:
    try:
        connection.sendall(question)
        return bool(connection.recv(65_536))
    except SSL.Error:
        return False


def resumed(port: int, question: bytes, version: ssl.TLSVersion) -> tuple[bool, bool]:
    """Return True if a second connection resumes the session of a first one, and True if it serves."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.minimum_version = context.maximum_version = version
    session: ssl.SSLSession | None = None
    reused, served = False, b""
    for _ in range(2):
        with socket.create_connection(("127.0.0.1", port), PATIENCE_SECONDS) as plain:
            plain.settimeout(PATIENCE_SECONDS)
            with context.wrap_socket(plain, session=session) as connection:
                connection.sendall(question)
                served = connection.recv(65_536)
                session, reused = connection.session, bool(connection.session_reused)
    return reused, bool(served)


class HandshakesTest(EncryptedCase):
    async def ports(self) -> dict[str, tuple[int, bytes]]:
        """The encrypted ports, with a question of each."""
        namesrv = self.namesrv(**self.tls())
        broker = await self.broker(namesrv_addr=f"127.0.0.1:{namesrv.port}", **self.tls())
        broker.serve_grpc(0)
        own = OwnCertificate(self.files.certificate, self.files.key)
        console = ConsoleService(
            ConsoleSettings((f"127.0.0.1:{namesrv.port}",), port=0, certificate=own), reactor, lambda text: None
        )
        console.startService()
        self.addCleanup(console.stopService)
        return {
            "name server": (namesrv.port, LISTED),
            "broker": (broker.port, ASKED),
            "gRPC": (broker.grpc_port, PREFACE + bytes.fromhex("000000040000000000")),
            "console": (console.port, PAGE),
        }

    async def at_each_port(self, call: Callable[..., Any], *more: Any) -> dict[str, Any]:
        found = {}
        for name, (port, question) in (await self.ports()).items():
            found[name] = await deferToThread(call, port, question, *more)
        return found

    async def test_a_second_handshake_inside_a_connection_is_refused(self) -> None:
        found = await self.at_each_port(renegotiated)
        self.assertEqual(found, dict.fromkeys(found, (True, 0)))

    async def test_no_session_is_resumed(self) -> None:
        for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
            found = await self.at_each_port(resumed, version)
            self.assertEqual(found, dict.fromkeys(found, (False, True)))
