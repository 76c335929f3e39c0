"""When an address that could not be reached is tried again: plain values and `now` in, a decision out."""

from __future__ import annotations

import random

import attrs

FIRST_SECONDS = 0.1
MOST_SECONDS = 0.5
"""So soon after its return a server is found."""


@attrs.frozen
class _Rest:
    failures: int
    until: float
    reason: str


@attrs.define
class Backoff:
    """After each failure in a row the address rests twice as long, up to MOST_SECONDS.

    A rest is shortened at random by up to a half, so that the clients of a server that comes back do not come all at once.
    """

    rng: random.Random
    _rests: dict[str, _Rest] = attrs.Factory(dict)

    def failed(self, address: str, reason: str, now: float) -> None:
        """An attempt to connect failed."""
        before = self._rests.get(address)
        failures = 1 if before is None else before.failures + 1
        longest = min(MOST_SECONDS, FIRST_SECONDS * 2.0 ** min(failures - 1, 10))
        self._rests[address] = _Rest(failures, now + longest * self.rng.uniform(0.5, 1.0), reason)

    def connected(self, address: str) -> None:
        self._rests.pop(address, None)

    def resting(self, address: str, now: float) -> str | None:
        """Why it failed last and when it is tried again, in words; None where it may be tried."""
        rest = self._rests.get(address)
        if rest is None or now >= rest.until:
            return None
        return f"{rest.reason} (tried {rest.failures} times, again in {rest.until - now:.1f} s)"
