"""A load of mixed messages that runs beside a test: batches, large ones, delayed ones, to several topics."""

from __future__ import annotations

import threading
from collections import Counter
from concurrent.futures import Future, ThreadPoolExecutor

import attrs

from interop.peers.clients import Producer

ROUND = 5000
TRICKLE = 200
"""Messages of one round while the load is not complete, and of the following rounds until it is ended."""

PAUSE_SECONDS = 0.05
THREADS = 8


@attrs.define(eq=False)
class Load:
    """Sends `total` messages as fast as they are taken, then goes on slowly until `finish`; `sent` counts by status."""

    producer: Producer
    topics: list[str]
    total: int
    seed: int
    sent: Counter[str] = attrs.field(factory=Counter)
    _done: threading.Event = attrs.field(factory=threading.Event)
    _running: Future[None] = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        thread = ThreadPoolExecutor(1, "load")
        self._running = thread.submit(self._run)
        thread.shutdown(wait=False)

    @property
    def stored(self) -> int:
        """Messages that are in the master's log; a busy broker's refusals do not count."""
        return sum(count for status, count in self.sent.items() if status != "BUSY")

    def finish(self) -> Counter[str]:
        """End it once it is complete; raises what went wrong in it."""
        self._done.set()
        self._running.result()
        return self.sent

    def check(self) -> None:
        """Raise what went wrong in it so far."""
        if self._running.done():
            self._running.result()

    def _run(self) -> None:
        round_number = 0
        while self.stored < self.total or not self._done.wait(PAUSE_SECONDS):
            count = ROUND if self.stored < self.total else TRICKLE
            seed = self.seed * 1000 + round_number
            self.sent.update(
                self.producer.peer.request(
                    "load", seconds=120, producer=self.producer.name, topics=self.topics, count=count, seed=seed,
                    threads=THREADS,
                )
            )  # fmt: skip
            round_number += 1
