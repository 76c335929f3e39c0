"""Results of one face of the client, and the expected ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from tests.soak.load import OK

MOST_OBJECTS_MORE = 3000
"""Between two rests: what is remembered of brokers and modules."""
MEMORY_A_MINUTE_MIB = 0.5


@attrs.define
class FaceOutcome:
    """Memory in MiB, without mapped files."""

    sends: dict[str, int] = attrs.field(factory=dict)
    deliveries: dict[str, int] = attrs.field(factory=dict)
    again: dict[str, int] = attrs.field(factory=dict)
    missing: int = 0
    rests: list[dict[str, int]] = attrs.field(factory=list)
    """After a first round, and after the last: what is open while nothing runs."""
    exit_status: int = -1
    most_files: int = 0
    most_memory: float = 0.0
    memory_a_minute: float = 0.0
    processor_seconds: float = 0.0
    wrong: list[str] = attrs.field(factory=list)
    faults: list[str] = attrs.field(factory=list)

    def add(self, printed: Mapping[str, Any]) -> None:
        """Add the results of the process itself."""
        for name, value in printed.items():
            setattr(self, name, value)


def broken_promises(outcomes: Mapping[str, FaceOutcome], seconds: float) -> list[str]:
    """Return violated promises, which must not occur even on a slow machine."""
    return [f"{face}: {problem}" for face, outcome in outcomes.items() for problem in _problems(outcome, seconds)]


def _problems(outcome: FaceOutcome, seconds: float) -> list[str]:
    problems = [*outcome.wrong, *outcome.faults]
    if outcome.exit_status:
        problems.append(f"exit status {outcome.exit_status}")
    if outcome.missing:
        problems.append(f"{outcome.missing} acknowledged messages were not delivered")
    if outcome.sends.get(OK, 0) < seconds:
        problems.append(f"the load was hardly served: {outcome.sends}")
    if len(outcome.rests) == 2:
        before, after = (dict(rest) for rest in outcome.rests)
        more = after.pop("objects") - before.pop("objects")
        if before != after:
            problems.append(f"open after the first round {before}, after the last {after}")
        if more > MOST_OBJECTS_MORE:
            problems.append(f"{more} more objects than after the first round")
    return problems


def growing(outcomes: Mapping[str, FaceOutcome]) -> list[str]:
    """Return signs of growth that are visible within minutes."""
    return [
        f"{face}: {outcome.memory_a_minute} MiB more a minute"
        for face, outcome in outcomes.items()
        if outcome.memory_a_minute > MEMORY_A_MINUTE_MIB
    ]
