"""A job that follows its stores: run again and again, each time on the stores as they then are."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from twisted_mq.spark.commands.stores import Stores
from twisted_mq.spark.findings.findings import Findings


def follow(
    stores: Stores,
    run: Callable[[Stores], Findings],
    seconds: float,
    now: Callable[[], float],
    wait: Callable[[float], bool],
) -> Iterator[Findings]:
    """Yield the findings of one run after another. A run begins `seconds` after the one before began, or when that one is over.

    `now` is monotonic time in seconds. `wait` waits for so many seconds and returns True to end. A store that a pattern matches
    later is part of the next run. Raises what a run raises.
    """
    while True:
        began = now()
        yield run(stores)
        if wait(max(0.0, began + seconds - now())):
            return
        stores = stores.reopened()
