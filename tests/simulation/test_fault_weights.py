"""Drawing of faults by weights."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from tests.simulation import fault_weights
from tests.simulation.fault_weights import FIRST_WORLDS, LEAST, MOST, WEIGHTS, Rewards, draw
from tests.simulation.ordered_faults import ORDERED_FAULTS

KINDS = ["a", "b", "c", "d"]


def test_kinds_of_a_world_differ_and_come_from_its_chance_alone() -> None:
    for count in (1, 3, 9):
        drawn = draw(KINDS, count, random.Random(7))
        assert drawn == draw(KINDS, count, random.Random(7))
        assert len(drawn) == len(set(drawn)) == min(count, len(KINDS))


def test_a_heavier_kind_is_drawn_more_often_and_a_light_one_still_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fault_weights, "WEIGHTS", {"a": 4.0, "b": 0.25})
    source = random.Random(1)
    drawn = Counter(kind for _ in range(2000) for kind in draw(KINDS, 1, source))
    assert drawn["a"] > 1.5 * drawn["c"] and drawn["c"] > 1.3 * drawn["b"] > 200


def test_lines_are_credited_to_the_kinds_of_their_world() -> None:
    rewards = Rewards()
    for _ in range(FIRST_WORLDS):
        rewards.add(["a"], 1000)
    rewards.add(["a"], 30)
    rewards.add(["a", "b"], 20)
    rewards.add(["b"], 0)
    rewards.add(["c"], 0)
    # lines a world: a 20, b 5, c 0; all kinds 50 lines in 5
    assert rewards.weights() == {"a": 2.0, "b": 0.5, "c": LEAST}


def test_the_table_names_faults_that_there_are() -> None:
    assert WEIGHTS.keys() <= ORDERED_FAULTS.keys()
    assert all(LEAST <= weight <= MOST for weight in WEIGHTS.values())
