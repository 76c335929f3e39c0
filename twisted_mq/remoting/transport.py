"""Defines what a connection uses of its transport."""

from __future__ import annotations

from typing import Protocol

from twisted.internet import interfaces

from twisted_mq.protocol.layouts.host import pack_host

USUAL_READ_BYTES = 64 * 1024
"""The bytes that are read at once from a new connection, Twisted's default."""
MOST_READ_BYTES = 256 * 1024
FEW_FRAMES, MANY_FRAMES = 16, 64
"""In a read. A read of up to MOST_READ_BYTES has at most so many frames, or else is the last one of its size."""


def next_read_bytes(size: int, frames: int) -> int:
    """Return how many bytes to read after a read of `size` bytes, as many as were asked for, that ended so many frames.

    Large frames come in larger reads: bodies of 4 KiB to 1 MiB cost a broker 0.85 to 0.7 of the processor time then, because more
    requests are read and answered together. Many small frames in a read would take one turn for too long.
    """
    if frames > MANY_FRAMES:
        return USUAL_READ_BYTES
    return min(2 * size, MOST_READ_BYTES) if frames <= FEW_FRAMES else size


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
