"""Configures TLS of the gRPC port: plain text and TLS on one port, told apart by a connection's first byte; ALPN offers h2.

Most 5.x clients begin with TLS and accept any certificate. So, as in Apache's proxy, the port uses TLS with a generated
certificate if the settings name none. If OpenSSL is not installed, it accepts only plain text.
"""

from __future__ import annotations

import attrs
from twisted.internet import interfaces

from twisted_mq.config.tls_options import TlsMode, TlsOptions, with_tls_file
from twisted_mq.encryption.servers import ServerEncryption
from twisted_mq.extras import MissingExtra, require

ALPN = (b"h2",)


def grpc_encryption(options: TlsOptions, clock: interfaces.IReactorTime) -> ServerEncryption | None:
    """Return how the port's connections are encrypted; None without TLS. Raises ConfigError."""
    settings = with_tls_file(options)
    made_up = settings.tls_server_cert_path is None
    if made_up:
        try:
            require("TLS", "tls")
        except MissingExtra:
            return None
        settings = attrs.evolve(settings, tls_test_mode_enable=True)
    if settings.tls_server_mode is TlsMode.DISABLED:
        settings = attrs.evolve(settings, tls_server_mode=TlsMode.PERMISSIVE)
    encryption = ServerEncryption(settings, clock.seconds, clock, alpn=ALPN)
    if not made_up:
        require("TLS", "tls")
        encryption.load()
    return encryption
