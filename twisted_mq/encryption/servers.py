"""Encrypts the connections of one server, and reads its certificates again when their files change.

In permissive mode one port serves both kinds: the first byte of a TLS handshake is 0x16, that of a frame's length is 0 or
1 (Apache: NettyRemotingServer.TlsModeHandler).
"""

from __future__ import annotations

import datetime
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

import attrs
from twisted.internet import interfaces, protocol
from zope.interface import implementer

from twisted_mq.config.errors import ConfigError
from twisted_mq.config.tls_options import TlsMode, TlsOptions, with_tls_file
from twisted_mq.encryption.clients import Connect, encrypted
from twisted_mq.encryption.settings import encrypts_requests, own_settings
from twisted_mq.extras import require
from twisted_mq.logs import Logger

if TYPE_CHECKING:
    from OpenSSL import SSL
    from twisted.protocols.tls import TLSMemoryBIOProtocol

HANDSHAKE = 0x16

TLS_CERT_KEY = "tls.server.certPath"
"""The name of the file in errors."""

LOOK_SECONDS = 5.0
"""The interval at which the files of certificates are checked for changes."""

Stamp = tuple[tuple[str, int, int, int], ...]


@implementer(interfaces.IOpenSSLServerConnectionCreator)
@attrs.define(eq=False)
class ServerEncryption:
    """The encryption of one server. New connections get the present certificate."""

    settings: TlsOptions
    now: Callable[[], float]
    clock: interfaces.IReactorTime | None = None
    """The clock of the server's reactor, which flushes writes; None for the default reactor."""
    alpn: tuple[bytes, ...] = ()
    """Protocols that are offered to clients which ask for some (RFC 7301)."""
    log = Logger()
    _context: SSL.Context | None = None
    _stamp: Stamp = ()
    _damage: str = ""

    @property
    def mode(self) -> TlsMode:
        return self.settings.tls_server_mode

    def serverConnectionForTLS(self, tlsProtocol: TLSMemoryBIOProtocol) -> SSL.Connection:
        """Return the OpenSSL connection; Twisted calls it for each connection."""
        from OpenSSL import SSL

        if self._context is None:
            self.load()
        assert self._context is not None
        return SSL.Connection(self._context, None)

    def load(self) -> None:
        """Read certificate and key. Raises ConfigError, which names key and file."""
        from twisted_mq.encryption.contexts import offer, server_context

        self._stamp = self._stamp_now()
        context = server_context(self.settings, self.now())
        if self.alpn:
            offer(context, self.alpn)
        self._context = context

    def certificates_end(self) -> datetime.datetime | None:
        """Return when the first of the present certificates ends; None while none was read. Raises ConfigError."""
        from twisted_mq.encryption.contexts import PemFile, read_certificates

        path = self.settings.tls_server_cert_path
        if path is None or self._context is None:
            return None
        return min(one.not_valid_after_utc for one in read_certificates(PemFile(TLS_CERT_KEY, path), self.now()))

    def look(self) -> None:
        """Read the files again if they changed; a damaged file changes nothing, and is logged once."""
        try:
            if self._stamp_now() == self._stamp:
                return
            self.load()
        except (ConfigError, OSError) as error:
            if str(error) != self._damage:
                self.log.error("certificate not replaced: {e}", e=error)
            self._damage = str(error)
            self._stamp = ()
            return
        self._damage = ""
        self.log.info("certificate reloaded: {path}", path=self.settings.tls_server_cert_path)

    def _stamp_now(self) -> Stamp:
        settings = self.settings
        paths = settings.tls_server_cert_path, settings.tls_server_key_path, settings.tls_server_trust_cert_path
        stats = [(path, os.stat(path)) for path in paths if path is not None and os.path.exists(path)]
        return tuple((path, one.st_mtime_ns, one.st_size, one.st_ino) for path, one in stats)

    def expect(self, connection: Any) -> None:
        """Check the first byte of a new connection, and start TLS if the peer does.

        `connection` is a protocol on a TCP transport, as put_below needs it.
        """
        if self.mode is TlsMode.DISABLED:
            return

        def first(data: bytes) -> None:
            del connection.dataReceived
            if data[0] == HANDSHAKE:
                from twisted_mq.encryption.contexts import put_below

                put_below(connection, self, self.clock).dataReceived(data)
            elif self.mode is TlsMode.ENFORCING:
                peer = connection.transport.getPeer()
                self.log.warn("unencrypted connection closed: peer={h}", h=getattr(peer, "host", peer))
                connection.transport.abortConnection()
            else:
                connection.dataReceived(data)

        connection.dataReceived = first

    def of_links(self, factory: protocol.ServerFactory) -> protocol.ServerFactory:
        """Return the same factory for replication's connections; with haTls, encrypted from their first byte on."""
        if not self.settings.ha_tls:
            return factory
        from twisted_mq.encryption.connection import EncryptedFactory

        return cast(protocol.ServerFactory, EncryptedFactory(self, False, factory, clock=self.clock))

    def of_requests(self, connect: Connect) -> Connect:
        """Return the same endpoints for the server's own requests, encrypted if the settings say so. Raises ConfigError."""
        return self._encrypted(connect) if encrypts_requests(self.settings) else connect

    def of_link(self, connect: Connect) -> Connect:
        """Return the same endpoints for a slave's link to its master. Raises ConfigError."""
        return self._encrypted(connect) if self.settings.ha_tls else connect

    def _encrypted(self, connect: Connect) -> Connect:
        return encrypted(connect, own_settings(self.settings), self.now(), self.clock)


def server_encryption(
    options: TlsOptions, now: Callable[[], float], clock: interfaces.IReactorTime | None = None
) -> ServerEncryption | None:
    """Return the encryption of the settings, certificates read; None without encryption. Raises ConfigError, MissingExtra."""
    settings = with_tls_file(options)
    takes = settings.tls_server_mode is not TlsMode.DISABLED or settings.ha_tls
    if not takes and not encrypts_requests(settings):
        return None
    require("TLS", "tls")
    encryption = ServerEncryption(settings, now, clock)
    if takes:
        encryption.load()
    return encryption
