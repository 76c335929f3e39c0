"""Compares the host in a registered address with the host that a connection comes from.

The master's own host and loopback are the same host, IPv4 and its form in IPv6 too. A name is resolved.
"""

from __future__ import annotations

import ipaddress
import socket

import attrs

from twisted_mq.reactor_threads import InThread

LOOPBACK = frozenset({"127.0.0.1", "::1"})
"""The addresses from which this machine's own connections come."""


@attrs.frozen
class HostNames:
    """The hosts as one broker sees them; `own_ip` is its registered address."""

    own_ip: str
    in_thread: InThread

    def same(self, host: str) -> str:
        """Return one text for each host: IPv4 as such, this machine by the address that others know.

        Other loopback addresses than LOOPBACK are hosts of their own: a slave connects from one only if its settings say so.
        """
        ip = _ip(host)
        return host if ip is None else self.own_ip if str(ip) in LOOPBACK else str(ip)

    async def hosts_of(self, address: str) -> frozenset[str]:
        """Return the host of host:port and, for a name, its addresses too, each as `same` returns it.

        A machine may register any loopback address, as 127.0.1.1 that Debian gives to its name.
        """
        name = address.rpartition(":")[0]
        found = {name} if _ip(name) is not None else {name, *await self.in_thread(addresses_of, name)}
        return frozenset(map(self.same, found)) | {
            self.own_ip for one in found if getattr(_ip(one), "is_loopback", False)
        }


def _ip(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """Return an address, as IPv4 if it is one in IPv6; None for a name."""
    try:
        ip = ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return None
    return getattr(ip, "ipv4_mapped", None) or ip


def addresses_of(name: str) -> set[str]:
    """Return the addresses that the system's resolver knows for a host name; empty if it knows none. Blocks."""
    try:
        return {str(found[4][0]) for found in socket.getaddrinfo(name, None)}
    except (OSError, UnicodeError):
        return set()
