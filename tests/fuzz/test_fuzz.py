"""Some thousands of generated frames against live servers; `make fuzz` sends a million."""

from __future__ import annotations

import os
from pathlib import Path
from random import Random

import attrs

from tests.fuzz.frames import FrameMaker
from tests.fuzz.run import fuzz

FRAMES = int(os.environ.get("MQ_FUZZ_FRAMES", "4000"))
SEED = int(os.environ.get("MQ_FUZZ_SEED", "20261122"))


def test_strangers_frames_neither_stop_the_servers_nor_reach_the_honest_client(tmp_path: Path) -> None:
    outcome = fuzz(FRAMES, SEED, tmp_path)
    print(attrs.asdict(outcome))
    assert (outcome.faults, outcome.inconsistencies, outcome.exit_status) == ([], [], 0)
    assert outcome.frames >= FRAMES and outcome.answers > FRAMES // 10 and outcome.honest >= FRAMES // 500
    assert not (tmp_path / "store" / "abort").exists()


def test_one_seed_makes_the_same_frames() -> None:
    first, second = (FrameMaker(Random(5), ("broker",)) for _ in range(2))
    assert [first.frame() for _ in range(50)] == [second.frame() for _ in range(50)]
