"""Binds a listening port before the server is ready, so that its number is known before clients can connect."""

from __future__ import annotations

import errno
import socket
from typing import Any, Protocol, Self

from twisted.internet import interfaces, protocol

BACKLOG = 1024


class PortError(Exception):
    """Raised when a port cannot be bound; the text names it, its setting and what to do."""

    def __init__(self, text: str, port: int = 0) -> None:
        super().__init__(text)
        self.port = port


class Bound(Protocol):
    """A bound socket: the part of `socket.socket` that is used."""

    @property
    def family(self) -> socket.AddressFamily: ...

    def getsockname(self) -> tuple[str, int]: ...

    def listen(self, backlog: int, /) -> None: ...

    def fileno(self) -> int: ...

    def close(self) -> None: ...

    def __enter__(self) -> Self: ...

    def __exit__(self, *error: object) -> None: ...


class Bind(Protocol):
    """The type of `bind`, and of a test's replacement."""

    def __call__(self, host: str, port: int, setting: str = "listenPort") -> Bound: ...


def bind(host: str, port: int, setting: str = "listenPort") -> socket.socket:
    """Return a bound TCP socket, not listening yet; port 0 takes a free one. Raises PortError, which names the setting."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    bound = socket.socket(family, socket.SOCK_STREAM)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    bound.setblocking(False)
    try:
        bound.bind((host, port))
    except OSError as error:
        bound.close()
        raise PortError(_advice(host, port, error).replace("listenPort", setting), port) from error
    return bound


def listen(
    reactor: interfaces.IReactorSocket, bound: Bound, factory: protocol.ServerFactory[Any]
) -> interfaces.IListeningPort:
    """Serve `factory` on a bound socket. Returns Twisted's listening port, which owns the descriptor. Raises PortError."""
    host, port = bound.getsockname()[:2]
    try:
        bound.listen(BACKLOG)
        return reactor.adoptStreamPort(bound.fileno(), bound.family, factory)
    except OSError as error:
        raise PortError(_advice(host, port, error), port) from error
    finally:
        bound.close()


def _advice(host: str, port: int, error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        return f"port {port} on {host} is in use: stop the program that uses it, or set another listenPort"
    if error.errno == errno.EACCES:
        return f"port {port} on {host} needs more rights: set a listenPort above 1023"
    return f"cannot listen on {host}:{port}: {error.strerror}; set bindAddress and listenPort to ones of this machine"
