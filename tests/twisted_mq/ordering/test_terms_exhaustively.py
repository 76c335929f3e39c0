"""Every interleaving of pauses, late frames, ends of sessions and hand-overs of two groups, see `term_model`.

`make simulate-rules` explores larger bounds.
"""

from __future__ import annotations

import os

import pytest

from tests.twisted_mq.ordering.term_model import RULES, Broken, TermModel

IS_LONG = int(os.environ.get("MQ_HISTORIES", "0")) > 1000

BOUNDS = [(3, 0, 1), (2, 1, 0), (1, 1, 1)]
"""Messages, ends of sessions, changes of the head by a hand."""

LONG_BOUNDS = [(1, 2, 0), (3, 1, 0), (3, 0, 2), (2, 1, 1)]


@pytest.mark.parametrize("bounds", BOUNDS + LONG_BOUNDS * IS_LONG, ids=str)
def test_no_interleaving_loses_or_reorders_what_is_acknowledged(bounds: tuple[int, int, int]) -> None:
    assert TermModel(*bounds).explore() > 100


@pytest.mark.parametrize("rule", RULES)
def test_each_rule_is_needed(rule: str) -> None:
    with pytest.raises(Broken):
        TermModel(1, 1, 1, without=rule).explore()
