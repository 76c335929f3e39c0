"""Decides which address clients get (brokerIP1): the configured one, or that of the interface that reaches the name server."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Callable, Sequence

from twisted_mq.protocol.layouts.host import parse_host_text

WILDCARDS = frozenset({"0.0.0.0", "::", "*"})


def interface_towards(host: str, port: int) -> str:
    """Return this machine's address on the way to `host`; loopback if no way is known. Sends no packet."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_DGRAM)[0][0]
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect((host, port))
            return str(probe.getsockname()[0])
    except OSError:
        return "127.0.0.1"


def advertised_ip(
    given: str | None, name_servers: Sequence[str], towards: Callable[[str, int], str] = interface_towards
) -> str:
    """Return brokerIP1 as configured, or derived from the first name server; loopback without either."""
    if given:
        return given
    for address in name_servers:
        try:
            host, port = parse_host_text(address)
        except ValueError:
            continue
        return towards(host, port)
    return "127.0.0.1"


def address_warning(advertised: str, name_servers: Sequence[str]) -> str | None:
    """Return why clients could not reach that address; None if nothing speaks against it."""
    if advertised in WILDCARDS:
        return f"brokerIP1={advertised} is a wildcard; clients cannot connect to it; set brokerIP1 to a real address"
    try:
        ip = ipaddress.ip_address(advertised)
    except ValueError:
        return None
    remote = [one for one in name_servers if not _is_loopback(one.rpartition(":")[0])]
    if ip.is_loopback and remote:
        return f"brokerIP1={advertised} is loopback but the name server {remote[0]} is not: clients elsewhere cannot connect"
    if ip in ipaddress.ip_network("172.17.0.0/16"):
        return (
            f"brokerIP1={advertised} looks like the address of a container: clients outside of its network cannot"
            " connect; set brokerIP1 to the host's address and publish the port under the same number"
        )
    return None


def _is_loopback(host: str) -> bool:
    return host == "localhost" or host.startswith("127.") or host in ("::1", "[::1]")
