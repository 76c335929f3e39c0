"""No turn of a request does more than a bounded amount of work, and nothing of a connection stays when it is gone."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cost.shapes import SHAPES, Shape
from tests.cost.turns import CallMeter, cost_of

MOST_CALLS = 600_000
"""The limit of function calls in one turn: some 40 ms. In one piece these requests take up to 39 million calls."""


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: f"{shape.code}: {shape.name}")
def test_the_worst_turn_of_an_adverse_request_is_bounded(shape: Shape, tmp_path: Path) -> None:
    cost = cost_of(shape, CallMeter(), str(tmp_path))
    assert (cost.worst < MOST_CALLS, cost.left_bytes) == (True, 0), cost
