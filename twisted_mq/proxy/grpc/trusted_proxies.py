"""Load balancers before the gRPC port that tell the addresses of clients by the PROXY protocol.

A header is believed from configured addresses only: policies, shares of the budgets and logs go by a client's address.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable
from typing import TypeAlias

import attrs

from twisted_mq.config.errors import ConfigError
from twisted_mq.logs import Logger
from twisted_mq.protocol.layouts.proxy_header import ProxyHeaderError, begins, read_proxy_header
from twisted_mq.proxy.grpc.connection import GrpcConnection

Network: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network
Expect: TypeAlias = Callable[[GrpcConnection], None]


@attrs.frozen(eq=False)
class TrustedProxies:
    """Addresses of load balancers. `then` prepares a connection for what follows the header (TLS)."""

    networks: tuple[Network, ...]
    then: Expect | None = None
    log = Logger()

    @classmethod
    def parse(cls, text: str, then: Expect | None = None) -> TrustedProxies:
        """Read addresses and ranges, separated by commas. Raises ConfigError."""
        try:
            return cls(tuple(ipaddress.ip_network(one.strip(), strict=False) for one in text.split(",")), then)
        except ValueError as error:
            raise ConfigError(str(error), key="proxyProtocolFrom", value=text) from None

    def expect(self, connection: GrpcConnection) -> None:
        """Take the header that a new connection may begin with. Connections without one are taken as they are."""
        held = b""

        def first(data: bytes) -> None:
            nonlocal held
            held += data
            if not begins(held) or not self._trusts(connection.remote_address[0]):
                go_on(held)
                return
            try:
                header = read_proxy_header(held)
            except ProxyHeaderError as error:
                connection.cut(f"its PROXY header is wrong: {error}")
                return
            if header is not None:
                if header.source is not None:
                    connection.come_from(header.source)
                go_on(held[header.size :])

        def go_on(data: bytes) -> None:
            del connection.dataReceived
            if self.then is not None:
                self.then(connection)
            if data:
                connection.dataReceived(data)

        connection.dataReceived = first  # type: ignore[method-assign]

    def _trusts(self, host: str) -> bool:
        try:
            address = ipaddress.ip_address(host)
        except ValueError:
            return False
        if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
            address = address.ipv4_mapped
        return any(address in network for network in self.networks)
