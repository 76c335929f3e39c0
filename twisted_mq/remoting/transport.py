"""Defines what a connection uses of its transport."""

from __future__ import annotations

from typing import Protocol

from twisted.internet import interfaces

from twisted_mq.protocol.layouts.host import pack_host


class Transport(Protocol):
    """A transport over TCP, or a test's. Twisted declares these methods in three interfaces of its own."""

    bufferSize: int
    """The bytes that are read from the socket at once."""

    def getPeer(self) -> interfaces.IAddress: ...

    def write(self, data: bytes) -> None: ...

    def loseConnection(self) -> None: ...

    def abortConnection(self) -> None: ...

    def registerProducer(self, producer: interfaces.IPushProducer, streaming: bool) -> None: ...

    def unregisterProducer(self) -> None: ...

    def pauseProducing(self) -> None: ...

    def resumeProducing(self) -> None: ...


def peer_of(transport: Transport) -> tuple[str, int]:
    """Return host and port of the other end; those of loopback if it is not a TCP connection."""
    peer = transport.getPeer()
    return getattr(peer, "host", "127.0.0.1"), getattr(peer, "port", 0)


def packed(address: tuple[str, int]) -> bytes:
    """Return 8 or 20 bytes; empty for a name, which no peer over TCP has."""
    try:
        return pack_host(*address)
    except ValueError:
        return b""


def switch_on(transport: Transport, *setters: str) -> None:
    """Call setters of TCP options that the transport has."""
    for name in setters:
        switch = getattr(transport, name, None)
        if switch is not None:
            switch(True)
