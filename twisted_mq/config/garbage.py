"""Decides when Python collects garbage in a daemon: no collection takes long, however many objects the daemon has.

Reference counts free almost everything at once. A search for cycles takes 0.2 us an object and stops all threads. So the
interpreter searches only new objects. If many objects survive a search, they are put aside. All are searched again once there
are twice as many as at the last search, and at least once an hour.
"""

from __future__ import annotations

import gc
from collections.abc import Callable

import attrs

COLLECT_AFTER = (10_000, 1, 1)
"""The thresholds of Python's collector: the new objects that start a search among them (Python's own: 700), the searches before
one of the middle generation, and the searches of that before one of all objects not put aside, about 50,000."""
MANY = 10_000
"""Objects that are put aside if they outlive a look."""
LEAST_GROWTH = 1_000_000
LOOK_SECONDS = 10.0
"""The interval of the decision whether to look at everything."""
THAW_SECONDS = 3600.0
_ALL = 2
"""The generation of a look at all objects."""


@attrs.define(eq=False)
class GarbageLooks:
    """The looks of one process. `seconds` is a monotonic clock."""

    seconds: Callable[[], float]
    put_aside: int = 0
    """The number of objects that were put aside since the last look at everything, with those that are gone since."""
    _kept: int = 0
    _since: float = 0.0

    def start(self) -> None:
        """Put aside what the process has now: modules, tables, what the store has. Nothing of it becomes garbage."""
        gc.collect()
        self._everything_is_aside()
        gc.set_threshold(*COLLECT_AFTER)
        gc.callbacks.append(self._looked)

    def stop(self) -> None:
        """Put nothing more aside. Stopping twice is harmless."""
        if self._looked in gc.callbacks:
            gc.callbacks.remove(self._looked)

    def look_at_all(self) -> None:
        """Look at everything, if it is time to. This takes 0.2 s for a million objects."""
        is_old = self.put_aside and self.seconds() - self._since >= THAW_SECONDS
        if is_old or self._has_grown():
            gc.unfreeze()
            gc.collect()
            self._everything_is_aside()

    def _has_grown(self) -> bool:
        """Return True if there are many more objects than at the last look. To count a million takes 10 ms."""
        enough = max(self._kept, LEAST_GROWTH)
        if self.put_aside > enough:
            self.put_aside = max(0, gc.get_freeze_count() - self._kept)
        return self.put_aside > enough

    def _everything_is_aside(self) -> None:
        gc.freeze()
        self.put_aside, self._kept, self._since = 0, gc.get_freeze_count(), self.seconds()

    def _looked(self, phase: str, what: dict[str, int]) -> None:
        if phase != "stop" or what["generation"] < _ALL:
            return
        left = len(gc.get_objects(generation=_ALL))
        if left > MANY:
            gc.freeze()
            self.put_aside += left
