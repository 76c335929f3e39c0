"""The name servers that a client asks: one at a time, the next if one does not answer."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from twisted_mq.logs import Logger
from twisted_mq.protocol.codes import RequestCode, ResponseCode
from twisted_mq.protocol.errors import BodyError
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.remoting.client import RemotingClient, split_address
from twisted_mq.remoting.errors import RemotingConnectError, RemotingError
from twisted_mq.routing.address_server import AddressServer
from twisted_mq.routing.errors import ClientOptionIllegal, NameServerUnreachable

Answer = TypeVar("Answer")

ENVIRONMENT = "NAMESRV_ADDR"
"""Environment variable with the addresses if namesrv is not given, as for Apache's clients."""

_EXAMPLE = "write host:port, such as 127.0.0.1:9876"
_ALL_KNOW = frozenset({RequestCode.GET_ROUTEINFO_BY_TOPIC, RequestCode.GET_BROKER_CLUSTER_INFO})
"""Requests that every name server knows, but no broker."""


def parse_addresses(namesrv: str | Sequence[str], source: str = "namesrv") -> tuple[str, ...]:
    """Return the addresses in "a:9876;b:9876" (also with commas) or a sequence.

    Raises ClientOptionIllegal that names `source`.
    """
    if not isinstance(namesrv, str | Sequence) or not all(isinstance(one, str) for one in namesrv):
        raise ClientOptionIllegal(f"{source}: {namesrv!r} must be str or a list of str; {_EXAMPLE}")
    parts = re.split("[;,]", namesrv) if isinstance(namesrv, str) else list(namesrv)
    addresses = tuple(dict.fromkeys(part.strip() for part in parts if part.strip()))
    if not addresses:
        raise ClientOptionIllegal(f"{source} {namesrv!r} is empty; use host:port, such as 127.0.0.1:9876")
    for address in addresses:
        scheme, separated, rest = address.partition("://")
        if separated:
            raise ClientOptionIllegal(
                f"{source} {namesrv!r}: name servers do not use {scheme}; write {rest.split('/')[0]!r}, the host "
                "and port of a name server"
            )
        try:
            split_address(address)
        except RemotingConnectError as error:
            raise ClientOptionIllegal(f"{source} {namesrv!r}: {error}{_hint(address)}") from error
    return addresses


def _hint(address: str) -> str:
    return f"; write {address.rstrip(':')}:9876, with the port" if re.fullmatch(r"[\w.-]+:?", address) else ""


def given_addresses(
    namesrv: str | Sequence[str] | None, environment: Mapping[str, str], *, elsewhere: bool = False
) -> tuple[str, ...]:
    """Return the addresses of the argument, else of the environment, else none if they come from `elsewhere`.

    Raises ClientOptionIllegal if no source has an address.
    """
    if namesrv:
        return parse_addresses(namesrv)
    if environment.get(ENVIRONMENT):
        return parse_addresses(environment[ENVIRONMENT], ENVIRONMENT)
    if elsewhere:
        return ()
    raise ClientOptionIllegal(
        f"namesrv {namesrv!r} is empty; use host:port, such as 127.0.0.1:9876, or set {ENVIRONMENT}"
    )


class NotANameServer(RemotingConnectError):
    """Raised when a server of another kind answers at the address of a name server."""


def check_name_server(asked: int, answered: int) -> None:
    """Raise NotANameServer if the server does not know a request that each name server knows."""
    if answered == ResponseCode.REQUEST_CODE_NOT_SUPPORTED and asked in _ALL_KNOW:
        raise NotANameServer(
            "the server is not a name server, perhaps a broker (port 10911); use the address of the name server, usually with "
            "port 9876"
        )


class NameServers:
    """Asks the name server that answered last. If that fails, asks each other one once."""

    log = Logger()

    def __init__(
        self,
        remoting: RemotingClient,
        addresses: Sequence[str],
        *,
        first: int = 0,
        timeout_seconds: float = 3.0,
        address_server: AddressServer | None = None,
    ) -> None:
        """`first` is the index of the address to begin with; a random one spreads clients over the servers.

        Without addresses, the address server is asked before the first question.
        """
        self.addresses = tuple(addresses)
        self._remoting = remoting
        self._turn = first
        self._timeout_seconds = timeout_seconds
        self._address_server = address_server
        self._silent: set[str] = set()

    async def ask(self, request: RemotingCommand, read: Callable[[RemotingCommand], Answer]) -> Answer:
        """Return what `read` makes of the answer, whatever its code.

        A server whose answer `read` cannot decode (BodyError) counts as failed. Raises NameServerUnreachable if no server
        answers, and any other error of `read`.
        """
        if not self.addresses:
            await self.update()
        failures: dict[str, str] = {}
        addresses = self.addresses
        for _ in addresses:
            address = addresses[self._turn % len(addresses)]
            try:
                answer = await self._remoting.invoke(address, request, self._timeout_seconds)
                check_name_server(request.code, answer.code)
                found = read(answer)
            except (RemotingError, BodyError) as error:
                failures[address] = str(error)
                self._note(address, error)
                self._turn += 1
            else:
                self._silent.discard(address)
                return found
        raise NameServerUnreachable(failures)

    def _note(self, address: str, error: Exception) -> None:
        """Log once each time a name server stops answering."""
        if address not in self._silent:
            self._silent.add(address)
            self.log.info("name server does not answer: address={address} {error}", address=address, error=error)

    async def update(self) -> None:
        """Read the addresses from the address server, if one is set. Raises NameServerUnreachable, ClientOptionIllegal."""
        if self._address_server is None:
            return
        addresses = parse_addresses(await self._address_server.ask(), self._address_server.url)
        if addresses != self.addresses:
            self.log.info("name servers: {addresses}", addresses=";".join(addresses))
            self.addresses = addresses
