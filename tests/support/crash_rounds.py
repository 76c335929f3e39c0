"""How much a crash test does: a sample within `make test`, everything by `make crash`."""

from __future__ import annotations

import os

_THOROUGH = "MQ_CRASH_ROUNDS"
"""How many rounds of SIGKILL `make crash` runs; the other tests follow in proportion, the damage matrix is complete."""
SAMPLE_ROUNDS = 250


def kill_rounds() -> int:
    """How many writers are killed."""
    return int(os.environ.get(_THOROUGH, SAMPLE_ROUNDS))


def thorough() -> bool:
    """Whether everything is wanted, whatever its time."""
    return _THOROUGH in os.environ


def scaled(sample: int) -> int:
    """As many rounds of a test as are right where `sample` are within `make test`."""
    return max(1, sample * kill_rounds() // SAMPLE_ROUNDS)
