"""Number of generated cases of a test, and repeats of one of them: MQ_FUZZ_FRAMES, MQ_FUZZ_SEED, MQ_FUZZ_CASE."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from random import Random

FRAMES = int(os.environ.get("MQ_FUZZ_FRAMES", "4000"))
SEED = int(os.environ.get("MQ_FUZZ_SEED", "20261122"))
ONLY = os.environ.get("MQ_FUZZ_CASE")


def cases(share: float, least: int = 1) -> Iterable[int]:
    """Numbers of cases, so many for each frame; or the one that is asked for."""
    return range(max(least, int(FRAMES * share))) if ONLY is None else (int(ONLY),)


@contextmanager
def dice(case: int) -> Iterator[Random]:
    """The chance of one case; what fails says how to have it again."""
    try:
        yield Random(f"{SEED} {case}")
    except BaseException as error:
        error.add_note(f"again: MQ_FUZZ_SEED={SEED} MQ_FUZZ_CASE={case}")
        raise
