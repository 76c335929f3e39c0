"""So many messages a second, whatever the moments at which they come."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twisted_mq.client.core.pace import BURST_SECONDS, LONGEST_SECONDS, Pace, held_back_seconds, messages_to_ask


@given(st.floats(0.5, 1000), st.lists(st.floats(0, 0.5), min_size=50, max_size=300))
def test_no_span_has_more_than_its_share(per_second: float, gaps: list[float]) -> None:
    pace, now, went = Pace(per_second), 0.0, []
    for gap in gaps:
        now += max(gap, pace.wait(now))
        pace.spend(1, now)
        went.append(now)
    for first in range(0, len(went), 7):
        span = went[-1] - went[first]
        assert len(went) - first - 1 <= (span + BURST_SECONDS) * per_second + 1 + 1e-6


def test_after_a_rest_nothing_was_saved_up() -> None:
    pace = Pace(10)
    pace.spend(1, 0.0)
    assert pace.wait(100.0) == 0
    pace.spend(5, 100.0)
    assert pace.wait(100.0) == pytest.approx(0.4)


def test_a_queue_looks_up_each_second_and_asks_for_half_a_second() -> None:
    pace = Pace(10)
    pace.spend(1000, 0.0)
    assert held_back_seconds(pace, 0.0) == LONGEST_SECONDS
    assert [messages_to_ask(pace, most) for most in (32, 3)] == [5, 3]
    assert messages_to_ask(Pace(0.1), 32) == 1
    assert (held_back_seconds(None, 0.0), messages_to_ask(None, 32)) == (0.0, 32)
