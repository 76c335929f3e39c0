"""Decides when Python collects garbage in a daemon: no collection takes long, however many objects the daemon has.

Reference counts free almost everything at once. A search for cycles takes 0.2 us an object and stops all threads. So the
interpreter searches only new objects. If many objects survive a search, they are put aside. All are searched again once the
process has twice as many as at the last search, or once an hour, but only while it has little to do: a broker under siege would
stop for seconds. A busy process searches all only when it holds more than its budgets allow: then something must be garbage.

How many there are, `sys.getallocatedblocks` tells: it counts what Python's allocator gave out, of any type, and reads one
number a page. To count the objects that are put aside reads each of them, 0.2 s for the two million of a broker under siege.
"""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable

import attrs

COLLECT_AFTER = (20_000, 1, 1)
"""The thresholds of Python's collector: the new objects that start a search among them (Python's own: 700), the searches before
one of the middle generation, and the searches of that before one of all objects not put aside."""
MANY = 5_000
"""Objects that are put aside if they outlive a search, of whichever generation: then each is searched once."""
LEAST_GROWTH = 2_000_000
"""Blocks, about 200 MB."""
MOST_BLOCKS = 20_000_000
"""About 2 GB: more than the budgets of a daemon allow (docs/explanation/architecture.md)."""
BUSY = 0.1
"""The share of the time between two decisions in which a busy process used a processor, or waited for one. A broker under siege
is half idle for ten seconds now and then, and a search of all stopped it for 1.5 s then."""
LOOK_SECONDS = 2.0
"""The interval of the decision whether to look at everything."""
IDLE_LOOKS = 5
"""So many decisions in a row find the process idle before it counts as that: a load may just have begun."""
THAW_SECONDS = 3600.0
_OLDEST = 2
"""The generation that keeps what outlives a search of it."""


def occupied_seconds(path: str = "/proc/self/schedstat") -> float:
    """Return the seconds in which the first thread used a processor or waited for one, from the file that Linux has of that.

    A process that others keep from the processor is not idle. Without the file, return what all threads used.
    """
    try:
        with open(path, "rb") as file:
            used, waited, _ = map(int, file.read().split())
    except (OSError, ValueError):
        return time.process_time()
    return (used + waited) / 1e9


def wait_for_start() -> None:
    """Search nothing before the looks start: modules and tables are no garbage, and searches take a tenth of a start."""
    gc.disable()


@attrs.define(eq=False)
class GarbageLooks:
    """The looks of one process. `seconds` is a monotonic clock, `used` tells the seconds for which it had work to do."""

    seconds: Callable[[], float]
    blocks: Callable[[], int] = sys.getallocatedblocks
    used: Callable[[], float] = occupied_seconds
    is_aside: bool = False
    """True if objects were put aside since the last look at everything."""
    _kept: int = 0
    _since: float = 0.0
    _asked: tuple[float, float] = (0.0, 0.0)
    """`seconds` and `used` at the last decision."""
    _idle_looks: int = 0

    def start(self) -> None:
        """Put aside what the process has now: modules, tables, what the store has. Nothing of it becomes garbage."""
        gc.collect()
        self._everything_is_aside()
        self._asked = self.seconds(), self.used()  # the first decision counts from here
        gc.set_threshold(*COLLECT_AFTER)
        gc.enable()
        gc.callbacks.append(self._looked)

    def stop(self) -> None:
        """Put nothing more aside. Stopping twice is harmless."""
        if self._looked in gc.callbacks:
            gc.callbacks.remove(self._looked)

    def look_at_all(self) -> None:
        """Look at everything, if it is time to. This takes 0.2 s for a million objects."""
        is_busy = self._is_busy()
        if self.is_aside and self._is_due(is_busy):
            gc.unfreeze()
            gc.collect()
            self._everything_is_aside()

    def _is_busy(self) -> bool:
        (seconds, used), self._asked = self._asked, (self.seconds(), self.used())
        is_used = self._asked[1] - used > BUSY * (self._asked[0] - seconds)
        self._idle_looks = 0 if is_used else self._idle_looks + 1
        return self._idle_looks < IDLE_LOOKS

    def _is_due(self, is_busy: bool) -> bool:
        blocks = self.blocks()
        has_grown = blocks - self._kept > max(self._kept, LEAST_GROWTH)
        if is_busy:
            return has_grown and blocks > MOST_BLOCKS
        return has_grown or self.seconds() - self._since >= THAW_SECONDS

    def _everything_is_aside(self) -> None:
        gc.freeze()
        self.is_aside, self._kept, self._since = False, self.blocks(), self.seconds()

    def _looked(self, phase: str, what: dict[str, int]) -> None:
        if phase == "stop" and len(gc.get_objects(generation=min(what["generation"] + 1, _OLDEST))) > MANY:
            gc.freeze()
            self.is_aside = True
