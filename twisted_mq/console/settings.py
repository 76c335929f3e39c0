"""How a console is set up."""

from __future__ import annotations

import attrs

from twisted_mq.client.core.client_options import ClientOptions
from twisted_mq.coordination.settings import CoordinatorSettings

LOOPBACK = "127.0.0.1"
DEFAULT_PORT = 8090
TLS_CERT, TLS_KEY = "--console-tls-cert", "--console-tls-key"
"""How errors name the parts of a certificate."""


@attrs.frozen
class OwnCertificate:
    """What browsers are shown: PEM files, and what the key is encrypted with."""

    path: str
    key_path: str
    key_password: str | None = attrs.field(default=None, repr=False)


@attrs.frozen
class ConsoleSettings:
    """Without `accounts` people come in by a token, and all requests are signed as `client_options` say."""

    name_servers: tuple[str, ...]
    bind: str = LOOPBACK
    port: int = DEFAULT_PORT
    certificate: OwnCertificate | None = None
    """Pages are served encrypted; None: as they are."""
    accounts: bool = False
    """People log in with an access key of the cluster; it signs their requests."""
    read_only: bool = False
    """Nobody may change anything."""
    client_options: ClientOptions = attrs.field(factory=ClientOptions)
    """How servers are reached: encryption, and the account that counts without `accounts`."""
    coordinator: CoordinatorSettings | None = None
    """Where the lists of ordered topics are; None: not asked."""
