"""Connections of an admin tool, from the first request to the end of its work."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

from twisted.internet.interfaces import IReactorTime
from twisted.internet.task import deferLater

from twisted_mq.cli.admin.calls import AdminContext
from twisted_mq.protocol.wire.signature import Credentials
from twisted_mq.remoting.client import RemotingClient


@contextlib.contextmanager
def connected(
    reactor: IReactorTime,
    name_servers: list[str],
    echo: Callable[[str], None],
    warn: Callable[[str], None],
    signs_with: Credentials | None,
    *,
    as_json: bool = False,
) -> Iterator[AdminContext]:
    """What work is done with; its connections are closed at the end."""
    client = RemotingClient(reactor, credentials=signs_with)
    try:
        yield AdminContext(
            client=client,
            name_servers=name_servers,
            echo=echo,
            warn=warn,
            now_ms=lambda: int(reactor.seconds() * 1000),
            sleep=lambda seconds: deferLater(reactor, seconds),
            reactor=reactor,
            credentials=signs_with,
            as_json=as_json,
        )
    finally:
        client.close()
