"""Defines the settings of a console."""

from __future__ import annotations

import attrs

from twisted_mq.client.core.client_options import ClientOptions
from twisted_mq.coordination.settings import CoordinatorSettings
from twisted_mq.protocol.wire.signature import Credentials

LOOPBACK = "127.0.0.1"
DEFAULT_PORT = 8090
TLS_CERT, TLS_KEY = "--console-tls-cert", "--console-tls-key"
"""The names of a certificate's parts in errors."""


@attrs.frozen
class OwnCertificate:
    """The certificate that browsers get: PEM files, and the password of the key."""

    path: str
    key_path: str
    key_password: str | None = attrs.field(default=None, repr=False)


@attrs.frozen
class NamedCluster:
    """A cluster that pages can show: its name in the console, and its name servers."""

    name: str
    name_servers: tuple[str, ...]


@attrs.frozen
class ConsoleSettings:
    """Settings of a console. Without `accounts`, users log in with a token, and `client_options` sign all requests."""

    name_servers: tuple[str, ...]
    bind: str = LOOPBACK
    port: int = DEFAULT_PORT
    certificate: OwnCertificate | None = None
    """Pages are served encrypted; None: unencrypted."""
    accounts: bool = False
    """Users log in with an access key of the cluster, which signs their requests."""
    read_only: bool = False
    """No user may change anything."""
    client_options: ClientOptions = attrs.field(factory=ClientOptions)
    """The settings for reaching servers: encryption, and the account that is used without `accounts`."""
    own_account: Credentials | None = None
    """The console's own account with `accounts`. It reads the values that charts keep, and signs no user's request."""
    prometheus: str | None = None
    """The address of a Prometheus server that has the values of the past; None: the console keeps them itself."""
    coordinator: CoordinatorSettings | None = None
    """The coordinator with the lists of the first cluster's ordered topics; None: not asked."""
    others: tuple[NamedCluster, ...] = ()
    """The clusters that users can switch to."""
    name: str = ""
    """The first cluster's name in the console, shown if there are others."""

    @property
    def clusters(self) -> dict[str, NamedCluster]:
        """Return all clusters by name; the first one is shown after a login."""
        first = NamedCluster(self.name, self.name_servers)
        return {one.name: one for one in (first, *self.others)}
