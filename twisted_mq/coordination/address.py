"""Parses a coordinator's address: `HOST:PORT,HOST:PORT/chroot` as ZooKeeper's clients take it, or `memory`."""

from __future__ import annotations

import re

import attrs

from twisted_mq.coordination.operations import check_path

MEMORY = "memory"
"""The address of the tree in this process."""

DEFAULT_PORT = 2181
SERVER = re.compile(r"(?P<host>\[[0-9A-Fa-f:.]+(%\w+)?\]|[^\s\[\]:/@]+)(:(?P<port>\d{1,5}))?")


class BadAddress(ValueError):
    """Raised for a malformed address; the text names the part."""


@attrs.frozen
class CoordinatorAddress:
    """An address. `servers` are HOST:PORT, IPv6 in brackets; empty for `memory`. `chroot` is empty or begins with `/`."""

    servers: tuple[str, ...]
    chroot: str = ""

    @property
    def in_memory(self) -> bool:
        """True for the tree in this process."""
        return not self.servers

    def __str__(self) -> str:
        return (",".join(self.servers) or MEMORY) + self.chroot


def parse_address(text: str) -> CoordinatorAddress:
    """Return the address; a server without a port gets ZooKeeper's. Raises BadAddress."""
    hosts, slash, chroot = text.strip().partition("/")
    try:
        path = check_path(slash + chroot.rstrip("/")) if chroot.strip("/") else ""
    except ValueError as error:
        raise BadAddress(f"coordinator {text!r}: {error}") from None
    if hosts == MEMORY:
        return CoordinatorAddress((), path)
    return CoordinatorAddress(tuple(_server(text, host.strip()) for host in hosts.split(",")), path)


def _server(text: str, server: str) -> str:
    found = SERVER.fullmatch(server)
    port = int(found["port"] or DEFAULT_PORT) if found else 0
    if found is None or not 0 < port < 2**16:
        raise BadAddress(f"coordinator {text!r}: {server!r} is not HOST:PORT; write it like zk1:2181,zk2:2181/mq")
    return f"{found['host']}:{port}"
