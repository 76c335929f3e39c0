"""The findings of a check of a store, one for each run of like problems, so that a lost file is not a million lines."""

from __future__ import annotations

from collections.abc import Iterator

import attrs
import numpy as np

from twisted_mq.protocol.columns import Numbers

LOG, QUEUE, INDEX, OFFSETS, CONFIG = "log", "queue", "index", "consumerOffset", "config"
"""The parts of a store that a finding is about."""


@attrs.frozen
class StoreFinding:
    """A problem, or `count` of its kind that follow each other from `offset` on.

    The offset is physical in the log, a queue offset in a queue, an entry's number in an index file.
    """

    part: str
    path: str
    offset: int
    problem: str
    count: int = 1

    def __str__(self) -> str:
        more = f"; and so on, {self.count} in a row" if self.count > 1 else ""
        return f"{self.path} at {self.offset}: {self.problem}{more}"

    def as_json(self) -> dict[str, str | int]:
        """Return the values under the names of `mq store verify --json`."""
        return attrs.asdict(self)


def runs(numbers: Numbers) -> Iterator[tuple[int, int]]:
    """Yield (index of the first, count) of each run of ascending neighbours: 3 4 5 9 is (0, 3), (3, 1)."""
    if not len(numbers):
        return
    cuts = np.flatnonzero(np.diff(numbers) != 1) + 1
    begins = [0, *cuts.tolist()]
    ends = [*cuts.tolist(), len(numbers)]
    for begin, end in zip(begins, ends, strict=True):
        yield begin, end - begin
