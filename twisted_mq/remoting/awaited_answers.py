"""The requests of one connection whose answers have not come yet, by opaque."""

from __future__ import annotations

from twisted.internet import defer, interfaces

from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.remoting.errors import RemotingSendError, RemotingTimeoutError

_LARGEST_OPAQUE = 0x7FFFFFFF


class AwaitedAnswers:
    """How many they are is their length."""

    def __init__(self, clock: interfaces.IReactorTime) -> None:
        self._clock = clock
        self._awaited: dict[int, tuple[defer.Deferred[RemotingCommand], interfaces.IDelayedCall]] = {}
        self._last_opaque = 0

    def __len__(self) -> int:
        return len(self._awaited)

    def take_opaque(self) -> int:
        """The next request's number, from 1 on."""
        self._last_opaque = (self._last_opaque + 1) & _LARGEST_OPAQUE
        return self._last_opaque

    def expect(self, opaque: int, timeout_seconds: float, address: str) -> defer.Deferred[RemotingCommand]:
        """Fires with the answer; fails with RemotingTimeoutError, which names the peer's address, or as `fail` says."""
        waiting: defer.Deferred[RemotingCommand] = defer.Deferred(lambda _: self._forget(opaque))
        timer = self._clock.callLater(timeout_seconds, self._timed_out, opaque, timeout_seconds, address)
        self._awaited[opaque] = (waiting, timer)
        return waiting

    def answered(self, command: RemotingCommand) -> bool:
        """Hand an answer on; False where nobody waits for it."""
        awaited = self._awaited.pop(command.opaque, None)
        if awaited is None:
            return False
        awaited[1].cancel()
        awaited[0].callback(command)
        return True

    def postpone(self, seconds: float) -> None:
        """Let all wait longer."""
        for _, timer in self._awaited.values():
            timer.delay(seconds)

    def fail(self, reason: str) -> None:
        """The connection is gone: no answer comes any more."""
        awaited, self._awaited = self._awaited, {}
        for waiting, timer in awaited.values():
            timer.cancel()
            waiting.errback(RemotingSendError(reason))

    def _forget(self, opaque: int) -> None:
        awaited = self._awaited.pop(opaque, None)
        if awaited is not None and awaited[1].active():
            awaited[1].cancel()

    def _timed_out(self, opaque: int, timeout_seconds: float, address: str) -> None:
        waiting, _ = self._awaited.pop(opaque)
        waiting.errback(RemotingTimeoutError(f"no answer from {address} within {timeout_seconds:g} s"))
