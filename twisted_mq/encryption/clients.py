"""Encrypted connections of a client."""

from __future__ import annotations

from collections.abc import Callable

from twisted.internet import interfaces
from twisted.internet.endpoints import wrapClientTLS

from twisted_mq.encryption.settings import ClientSettings
from twisted_mq.extras import require

Connect = Callable[[str, int], interfaces.IStreamClientEndpoint]


def encrypted(connect: Connect, settings: ClientSettings, now: float) -> Connect:
    """The same endpoints with TLS on them. `now` is in seconds since 1970. Raises ConfigError, MissingExtra."""
    require("TLS", "tls")
    from twisted_mq.encryption.contexts import client_creators

    creator = client_creators(settings, now)
    return lambda host, port: wrapClientTLS(creator(host), connect(host, port))
