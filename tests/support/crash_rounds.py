"""Size of crash tests: a sample in `make test`, everything in `make crash`."""

from __future__ import annotations

import os

_THOROUGH = "MQ_CRASH_ROUNDS"
"""Number of rounds of SIGKILL in `make crash`; the other tests are in proportion, the damage matrix is complete."""
SAMPLE_ROUNDS = 250


def kill_rounds() -> int:
    """Return the number of killed writers."""
    return int(os.environ.get(_THOROUGH, SAMPLE_ROUNDS))


def thorough() -> bool:
    """Return True if everything is tested, independent of the time."""
    return _THOROUGH in os.environ


def scaled(sample: int) -> int:
    """As many rounds of a test as are right where `sample` are within `make test`."""
    return max(1, sample * kill_rounds() // SAMPLE_ROUNDS)
