"""Decides whether a store accepts messages, and why not (Apache: RunningFlags, DefaultMessageStore.checkStoreStatus).

Code that finds a reason to refuse messages shuts the gate with it, and opens it when the reason has passed. The appender
asks the gate before each put. Reasons are independent: a slave whose disk has space again stays shut.
"""

from __future__ import annotations

import threading

from twisted_mq.storage.interfaces import PutResult, Shut


class Gate:
    """Accepts or refuses messages.

    `why` is the reason that keeps the gate shut, the first in `Shut`'s order if there are several; None while it is open.
    It may be shut and opened in any thread. A put that began before it was shut is completed.
    """

    def __init__(self, *reasons: Shut) -> None:
        self.why: Shut | None = None
        self.no_space = False
        """Set if the last append that needed a new file found no space. The gate stays open: the next append tries again."""
        self._reasons: set[Shut] = set()
        self._changing = threading.Lock()
        for reason in reasons:
            self.shut(reason)

    def shut(self, reason: Shut) -> None:
        """Refuse messages until this reason is gone."""
        with self._changing:
            self._reasons.add(reason)
            self._look()

    def open(self, reason: Shut) -> None:
        """Remove this reason; no effect if it did not apply."""
        with self._changing:
            self._reasons.discard(reason)
            self._look()

    @property
    def why_not_now(self) -> Shut | None:
        """Return `why`, or DISK_FULL if appends find no space although the gate is open."""
        return self.why or (Shut.DISK_FULL if self.no_space else None)

    def _look(self) -> None:
        self.why = next((reason for reason in Shut if reason in self._reasons), None)


def refused(reason: Shut) -> PutResult:
    """Return the result of a put that is refused for this reason."""
    return PutResult(reason.status, shut=reason)
