"""Whether a store takes messages, and why not (Apache: RunningFlags, DefaultMessageStore.checkStoreStatus).

Whoever knows a reason shuts the gate with it, and opens it again where the reason can pass; the appender asks before each
put. Reasons do not cancel each other: a slave whose disk has space again stays shut.
"""

from __future__ import annotations

import threading

from twisted_mq.storage.interfaces import PutResult, Shut


class Gate:
    """`why` is what keeps it shut, of several reasons the one that `Shut` names first; None while it is open.

    It may be shut and opened in any thread; a put that began before it was shut is carried through.
    """

    def __init__(self, *reasons: Shut) -> None:
        self.why: Shut | None = None
        self.no_space = False
        """Whether the last append that needed a new file found no space for it. The gate stays open: the next one tries again."""
        self._reasons: set[Shut] = set()
        self._changing = threading.Lock()
        for reason in reasons:
            self.shut(reason)

    def shut(self, reason: Shut) -> None:
        """Take no messages until this reason is gone."""
        with self._changing:
            self._reasons.add(reason)
            self._look()

    def open(self, reason: Shut) -> None:
        """This reason is gone, where it was one."""
        with self._changing:
            self._reasons.discard(reason)
            self._look()

    @property
    def why_not_now(self) -> Shut | None:
        """`why`, or DISK_FULL where appends find no space though the gate is open."""
        return self.why or (Shut.DISK_FULL if self.no_space else None)

    def _look(self) -> None:
        self.why = next((reason for reason in Shut if reason in self._reasons), None)


def refused(reason: Shut) -> PutResult:
    """What a put ends with for this reason."""
    return PutResult(reason.status, shut=reason)
