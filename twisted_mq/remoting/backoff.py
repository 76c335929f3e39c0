"""Decides when an address that could not be reached is tried again: plain values and `now` in, a decision out."""

from __future__ import annotations

import random

import attrs

FIRST_SECONDS = 0.1
MOST_SECONDS = 0.5
"""A server is found again at most this long after its return."""


@attrs.frozen
class _Rest:
    failures: int
    until: float
    reason: str


@attrs.define
class Backoff:
    """Pauses for addresses: after each failure in a row twice as long, up to MOST_SECONDS.

    A pause is shortened at random by up to a half, so that the clients of a server that comes back do not all come at once.
    """

    rng: random.Random
    _rests: dict[str, _Rest] = attrs.Factory(dict)

    def failed(self, address: str, reason: str, now: float) -> None:
        """Record a failed attempt to connect."""
        before = self._rests.get(address)
        failures = 1 if before is None else before.failures + 1
        longest = min(MOST_SECONDS, FIRST_SECONDS * 2.0 ** min(failures - 1, 10))
        self._rests[address] = _Rest(failures, now + longest * self.rng.uniform(0.5, 1.0), reason)

    def connected(self, address: str) -> None:
        self._rests.pop(address, None)

    def resting(self, address: str, now: float) -> str | None:
        """Return why the last attempt failed and when the next one is, as text; None if the address may be tried."""
        rest = self._rests.get(address)
        if rest is None or now >= rest.until:
            return None
        return f"{rest.reason} (tried {rest.failures} times, retry in {rest.until - now:.1f} s)"
