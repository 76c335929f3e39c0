"""Weights of faults: faults that reached new lines of the services in earlier worlds are drawn more often.

`python -m tests.simulation.run --count N --weigh` measures it with an account: the lines that a world reaches first are
credited to the kinds of its faults in equal parts. Every second world uses the weights, the others equal chances: no kind is
dropped. The table is part of the source, so a seed is always the same world.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import attrs

TABLE = Path(__file__).with_suffix(".json")
LEAST, MOST = 0.25, 4.0
FIRST_WORLDS = 12
"""Nearly all that they reach is new, whatever their faults are."""

WEIGHTS: Mapping[str, float] = json.loads(TABLE.read_text())


def draw(kinds: Sequence[str], count: int, source: random.Random) -> list[str]:
    """Some of the kinds, no kind twice."""
    weights = WEIGHTS if source.random() < 0.5 else {}
    places = {kind: source.random() ** (1 / weights.get(kind, 1.0)) for kind in kinds}
    return sorted(kinds, key=lambda kind: places[kind], reverse=True)[:count]


@attrs.define
class Rewards:
    """Lines that worlds reached first, by kinds of faults."""

    _worlds: int = 0
    _worlds_with: Counter[str] = attrs.field(factory=Counter)
    _lines: Counter[str] = attrs.field(factory=Counter)

    def add(self, kinds: Iterable[str], lines: int) -> None:
        """A world with these kinds of faults reached so many lines that none before it had reached."""
        self._worlds += 1
        told = set(kinds)
        if self._worlds <= FIRST_WORLDS or not told:
            return
        self._worlds_with.update(told)
        for kind in told:
            self._lines[kind] += lines / len(told)  # type: ignore[assignment]  # parts of lines

    def weights(self) -> dict[str, float]:
        """The table: lines a world, as a multiple of those of all kinds."""
        rates = {kind: self._lines[kind] / worlds for kind, worlds in self._worlds_with.items()}
        usual = sum(self._lines.values()) / max(1, self._worlds_with.total())
        return {kind: round(min(MOST, max(LEAST, rate / (usual or 1.0))), 2) for kind, rate in sorted(rates.items())}

    def save(self) -> None:
        """Make it the table of the worlds to come."""
        TABLE.write_text(json.dumps(self.weights(), indent=1) + "\n")
