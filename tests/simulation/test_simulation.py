"""Some two hundred simulated clusters keep every promise; one seed is one world, to the byte."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.simulation.acting_scenario import ACTED, ActingScenario
from tests.simulation.run import outcomes, show
from tests.simulation.simulate import simulate

SEEDS = (*range(1, 201), 225)
"""The last is the world in which a committed offset outlived its log's end, in the slave's store, which then was the master's."""
ACTING_SEEDS = (*range(1, 16), 42, 108)
"""In 108 two writes of the timer's files met when a slave's master came back."""
TRACE_OF = "import sys; from tests.simulation.simulate import simulate; print(simulate(int(sys.argv[1])).trace)"


def test_two_hundred_seeds_keep_every_promise(capsys: pytest.CaptureFixture[str]) -> None:
    broken = [outcome for outcome in outcomes(SEEDS, os.cpu_count() or 1) if outcome.broken]
    for outcome in broken:
        show(outcome)
    assert not broken, capsys.readouterr().out


def test_slaves_that_act_for_lost_masters_keep_every_promise(capsys: pytest.CaptureFixture[str]) -> None:
    """A message may come twice there; none is lost, skipped or early."""
    found = list(outcomes(ACTING_SEEDS, os.cpu_count() or 1, kind=ActingScenario))
    broken = [outcome for outcome in found if outcome.broken]
    for outcome in broken:
        show(outcome)
    assert not broken, capsys.readouterr().out
    assert sum(outcome.faults[ACTED] for outcome in found) >= len(ACTING_SEEDS)


@pytest.mark.parametrize("seed", [3, 7, 11, 24])
def test_a_seed_is_the_same_world_in_every_process(seed: int) -> None:
    first, second = (
        subprocess.run(
            [sys.executable, "-c", TRACE_OF, str(seed)],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for hash_seed in ("1", "4711")
    )
    assert first == second == f"{simulate(seed).trace}\n"


def test_the_end_of_a_world_prints_nothing() -> None:
    """Seed 4 ends while a client is starting."""
    ran = subprocess.run([sys.executable, "-c", TRACE_OF, "4"], capture_output=True, text=True, check=True)
    assert ran.stderr == ""


def test_another_seed_is_another_world() -> None:
    assert simulate(1).trace != simulate(2).trace
