"""The name servers a client asks: one at a time, the next when one does not answer."""

from __future__ import annotations

import re
from collections.abc import Sequence

from twisted_mq.logs import Logger
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.remoting.client import RemotingClient, split_address
from twisted_mq.remoting.errors import RemotingConnectError, RemotingError
from twisted_mq.routing.errors import ClientOptionIllegal, NameServerUnreachable


def parse_addresses(namesrv: str | Sequence[str]) -> tuple[str, ...]:
    """Addresses of "a:9876;b:9876" (also with commas) or of a sequence. Raises ClientOptionIllegal."""
    parts = re.split("[;,]", namesrv) if isinstance(namesrv, str) else list(namesrv)
    addresses = tuple(dict.fromkeys(part.strip() for part in parts if part.strip()))
    if not addresses:
        raise ClientOptionIllegal(f"namesrv {namesrv!r} has no address; give one as host:port, e.g. 127.0.0.1:9876")
    for address in addresses:
        try:
            split_address(address)
        except RemotingConnectError as error:
            raise ClientOptionIllegal(f"namesrv {namesrv!r}: {error}") from error
    return addresses


class NameServers:
    """Asks the name server that answered last; where it fails, each other one once."""

    log = Logger()

    def __init__(
        self, remoting: RemotingClient, addresses: Sequence[str], *, first: int = 0, timeout_seconds: float = 3.0
    ) -> None:
        """`first` is the address to begin with; chosen at random it spreads clients over the servers."""
        self.addresses = tuple(addresses)
        self._remoting = remoting
        self._turn = first % len(self.addresses)
        self._timeout_seconds = timeout_seconds

    async def ask(self, request: RemotingCommand) -> RemotingCommand:
        """The answer, whatever its code. Raises NameServerUnreachable when none of them answers."""
        failures: dict[str, str] = {}
        for _ in self.addresses:
            address = self.addresses[self._turn]
            try:
                return await self._remoting.invoke(address, request, self._timeout_seconds)
            except RemotingError as error:
                failures[address] = str(error)
                self.log.info("name server does not answer: address={address} {error}", address=address, error=error)
                self._turn = (self._turn + 1) % len(self.addresses)
        raise NameServerUnreachable(failures)
