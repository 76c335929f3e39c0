"""What a connection asks of its transport."""

from __future__ import annotations

from typing import Protocol

from twisted.internet import interfaces


class Transport(Protocol):
    """A transport over TCP, or a test's. Twisted declares these methods in three interfaces of its own."""

    def getPeer(self) -> interfaces.IAddress: ...

    def write(self, data: bytes) -> None: ...

    def loseConnection(self) -> None: ...

    def abortConnection(self) -> None: ...

    def registerProducer(self, producer: interfaces.IPushProducer, streaming: bool) -> None: ...

    def unregisterProducer(self) -> None: ...

    def pauseProducing(self) -> None: ...

    def resumeProducing(self) -> None: ...
