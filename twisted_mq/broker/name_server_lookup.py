"""Looks up name servers while a broker runs: by an address server's page, or by a name with several addresses.

Apache: BrokerController.initialize, fetchNamesrvAddrByAddressServer and fetchNameSrvAddrByDnsLookup.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Sequence
from typing import Protocol

from twisted.internet import defer, interfaces

from twisted_mq.broker.options import BrokerOptions
from twisted_mq.logs import Logger
from twisted_mq.protocol.layouts.host import parse_host_text
from twisted_mq.reactor_threads import InThread
from twisted_mq.routing.address_server import AddressServer, address_server_url, http_get
from twisted_mq.routing.errors import NameServerUnreachable

FETCH_SECONDS = 3.0

Resolve = Callable[[str], defer.Deferred[Sequence[str]]]
"""Host name -> its IPv4 addresses. Fails with OSError."""


class LookUp(Protocol):
    """Looks up the name servers once."""

    async def __call__(self) -> list[str]:
        """Return the name servers as host:port. Raises NameServerUnreachable, OSError, ValueError."""


def by_address_server(options: BrokerOptions, reactor: interfaces.IReactorTime) -> LookUp:
    """Look them up on the page of rocketmq.namesrv.domain."""
    url = address_server_url(options.namesrv_domain, options.namesrv_domain_subgroup)
    server = AddressServer(url, http_get(reactor, FETCH_SECONDS))

    async def look() -> list[str]:
        return _checked((await server.ask()).split(";"))

    return look


def by_name(addresses: Sequence[str], resolve: Resolve) -> LookUp:
    """Look up all addresses of the names."""

    async def look() -> list[str]:
        found: list[str] = []
        for address in addresses:
            host, port = parse_host_text(address)
            found += [f"{ip}:{port}" for ip in sorted(await resolve(host))]
        return _checked(found)

    return look


def look_up_of(
    options: BrokerOptions, reactor: interfaces.IReactorTime, in_thread: InThread
) -> tuple[LookUp, int] | None:
    """Return the look-up that the settings ask for, and its period in ms; None if they ask for none."""
    if options.fetch_namesrv_addr_by_address_server and not options.name_servers:
        return by_address_server(options, reactor), options.fetch_namesrv_addr_interval
    if options.fetch_name_srv_addr_by_dns_lookup and options.name_servers:
        resolve = by_name(options.name_servers, lambda host: in_thread(addresses_of_host, host))
        return resolve, options.update_name_server_addr_period
    return None


def address_servers(options: BrokerOptions) -> list[str]:
    """Return the address of the name servers' page: the route to it is also the route to the name servers."""
    domain = options.namesrv_domain
    fetches = options.fetch_namesrv_addr_by_address_server
    return [domain if ":" in domain else f"{domain}:80"] if fetches else []


def addresses_of_host(host: str) -> Sequence[str]:
    """Return the host's IPv4 addresses. Blocks in the system's resolver. Raises OSError."""
    found = socket.getaddrinfo(host, None, socket.AF_INET, socket.SOCK_STREAM)
    return list(dict.fromkeys(str(one[4][0]) for one in found))


def _checked(addresses: Sequence[str]) -> list[str]:
    """Return the addresses, each once. Raises ValueError for a malformed one."""
    given = list(dict.fromkeys(one.strip() for one in addresses if one.strip()))
    for address in given:
        parse_host_text(address)
    return given


class NameServerLookUp:
    """Keeps `name_servers`, a list that others read, up to date. `changed` is called after each change."""

    log = Logger()

    def __init__(self, look_up: LookUp, name_servers: list[str], changed: Callable[[], object]) -> None:
        self._look_up = look_up
        self._name_servers = name_servers
        self._changed = changed
        self._failing = False
        self._looking = False

    async def look(self) -> None:
        """Look once. If that fails or finds nothing, the name servers stay as they are."""
        if self._looking:
            return
        self._looking = True
        try:
            found = await self._look_up()
        except (NameServerUnreachable, OSError, ValueError) as error:
            self._fail(str(error))
            return
        finally:
            self._looking = False
        if not found:
            self._fail("no address")
            return
        self._failing = False
        if found != self._name_servers:
            self.log.info("name servers are now {new}, were {old}", new=found, old=self._name_servers)
            self._name_servers[:] = found
            self._changed()

    def _fail(self, reason: str) -> None:
        if not self._failing:
            self.log.error("name servers not found, retrying: {reason}", reason=reason)
        self._failing = True
