"""Runs the delivery of waiting messages on the broker's clock: ten times a second or, under load, turn after turn."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from twisted.internet import interfaces

from twisted_mq.logs import Logger

IDLE_SECONDS = 0.1
"""The pause between two checks of the clock (Apache: DELAY_FOR_A_WHILE, 100 ms)."""


class DeliveryLoop:
    """Calls each turn until none has more at once, and `after` after each round; `stop` ends it.

    A failure is logged once, and again only after a call that succeeded.
    """

    log = Logger()

    def __init__(
        self, clock: interfaces.IReactorTime, turns: Sequence[Callable[[], bool]], after: Callable[[], object]
    ) -> None:
        self._clock = clock
        self._turns = turns
        self._after = after
        self._call: interfaces.IDelayedCall | None = None
        self._failing: set[Callable[[], object]] = set()

    def start(self) -> None:
        """Start with the next turn of the reactor."""
        self._call = self._clock.callLater(0, self._round)

    def wake(self) -> None:
        """Look again with the next turn of the reactor: something that a turn waited for has come."""
        if self._call is not None and self._call.active():
            self._call.reset(0)

    def stop(self) -> None:
        """Run no more rounds. A second call does nothing."""
        call, self._call = self._call, None
        if call is not None and call.active():
            call.cancel()

    def _round(self) -> None:
        more = False
        for turn in self._turns:
            more |= self._one(turn)
        self._one(self._after)
        if self._call is not None:
            self._call = self._clock.callLater(0 if more else IDLE_SECONDS, self._round)

    def _one(self, work: Callable[[], object]) -> bool:
        try:
            more = bool(work())
        except Exception:
            if work not in self._failing:
                self.log.failure("delivery of waiting messages failed, retrying")
            self._failing.add(work)
            return False
        self._failing.discard(work)
        return more
