"""Follows stores until Ctrl-C or SIGTERM: a run that began then ends first."""

from __future__ import annotations

import itertools
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

import attrs
import click

if TYPE_CHECKING:
    from twisted_mq.spark.commands.export import ExportSelection
    from twisted_mq.spark.commands.stores import Stores
    from twisted_mq.spark.findings.findings import Findings

COMPACT_TURNS = 60
"""Number of exports between two compactions: an hour, with an export a minute."""


def of_turn(wanted: ExportSelection, turn: int) -> ExportSelection:
    """Return the selection for one of many exports: the first and then each 60th one compacts."""
    return attrs.evolve(wanted, compact=wanted.compact and turn % COMPACT_TURNS == 0)


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


def followed(stores: Stores, seconds: float, run: Callable[[Stores, int], Findings]) -> Findings:
    """Run again and again, with the number of the run. Prints a line for each run that found something.

    Returns the findings of the last run, or of the last one that is not sound.
    """
    ended = threading.Event()
    before = {number: signal.signal(number, lambda *_: ended.set()) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        turns = itertools.count()
        return _worst(follow(stores, lambda now: run(now, next(turns)), seconds, time.monotonic, ended.wait))
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _worst(runs: Iterable[Findings]) -> Findings:
    """Print the runs that found something, and return the last one that is not sound, or else the last."""
    told: Findings | None = None
    for found in runs:
        if told is None or told.sound or not found.sound:
            told = found
        if found.tables[0].rows or not found.sound:
            figures = ", ".join(f"{one.name} {one.value}" for one in found.figures)
            click.echo(f"{time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime())} {figures}", err=True)
    assert told is not None  # a job runs at least once
    return told
