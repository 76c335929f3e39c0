"""Compares the host in a registered address with the host that a connection comes from.

The master's own host and loopback are the same host, IPv4 and its form in IPv6 too. A name is resolved.
"""

from __future__ import annotations

import ipaddress
import socket

import attrs

from twisted_mq.reactor_threads import InThread


@attrs.frozen
class HostNames:
    """The hosts as one broker sees them; `own_ip` is its registered address."""

    own_ip: str
    in_thread: InThread

    def same(self, host: str) -> str:
        """Return one text for each host: IPv4 as such, this machine by the address that others know."""
        try:
            ip = ipaddress.ip_address(host.strip("[]"))
        except ValueError:
            return host
        ip = getattr(ip, "ipv4_mapped", None) or ip
        return self.own_ip if ip.is_loopback else str(ip)

    async def hosts_of(self, address: str) -> frozenset[str]:
        """Return the host of host:port and, for a name, its addresses too, each as `same` returns it."""
        name = address.rpartition(":")[0]
        try:
            ipaddress.ip_address(name.strip("[]"))
        except ValueError:
            return frozenset(self.same(one) for one in {name, *await self.in_thread(addresses_of, name)})
        return frozenset([self.same(name)])


def addresses_of(name: str) -> set[str]:
    """Return the addresses that the system's resolver knows for a host name; empty if it knows none. Blocks."""
    try:
        return {str(found[4][0]) for found in socket.getaddrinfo(name, None)}
    except (OSError, UnicodeError):
        return set()
