"""Connects an admin tool, from the first request to the end of its work."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

from twisted.internet.interfaces import IReactorTime
from twisted.internet.task import deferLater

from twisted_mq.cli.admin.calls import AdminContext
from twisted_mq.cli.errors import CliError
from twisted_mq.cli.servers import Servers
from twisted_mq.clocks import time_of_day, wall_ms
from twisted_mq.config.errors import ConfigError
from twisted_mq.encryption.clients import encrypted
from twisted_mq.encryption.settings import ClientSettings
from twisted_mq.extras import MissingExtra
from twisted_mq.remoting.client import Connect, RemotingClient, tcp_endpoint
from twisted_mq.routing.errors import ClientOptionIllegal
from twisted_mq.routing.name_servers import parse_addresses

CONNECT_SECONDS = 3.0


@contextlib.contextmanager
def connected(
    reactor: IReactorTime,
    servers: Servers,
    echo: Callable[[str], None],
    warn: Callable[[str], None],
    *,
    as_json: bool = False,
) -> Iterator[AdminContext]:
    """Yield the context of some work; its connections are closed at the end. Raises CliError."""
    credentials, tls = servers.account(), servers.tls_settings()
    name_servers = _addresses(servers)
    connect = None if tls is None else _encrypted(reactor, tls)
    client = RemotingClient(reactor, connect=connect, credentials=credentials)
    try:
        yield AdminContext(
            client=client,
            name_servers=name_servers,
            echo=echo,
            warn=warn,
            now_ms=wall_ms(reactor),
            sleep=lambda seconds: deferLater(reactor, seconds),
            reactor=reactor,
            credentials=credentials,
            client_options=servers.client_options,
            as_json=as_json,
        )
    finally:
        client.close()


def _addresses(servers: Servers) -> list[str]:
    """Return the addresses. Raises CliError for a malformed one."""
    try:
        return list(parse_addresses(";".join(servers.addresses), "--namesrv")) if servers.addresses else []
    except ClientOptionIllegal as error:
        raise CliError(str(error)) from error


def _encrypted(reactor: IReactorTime, settings: ClientSettings) -> Connect:
    try:
        return encrypted(tcp_endpoint(reactor, CONNECT_SECONDS), settings, time_of_day(reactor)(), reactor)
    except (ConfigError, MissingExtra) as error:
        raise CliError(str(error)) from error
