"""Times of some calls of a hot path."""

from __future__ import annotations

import pytest
from twisted.internet.task import Clock

from twisted_mq.broker.statistics.call_times import SAMPLE_CALLS, CallTimes, TimedCall


def test_calls_after_arm_are_timed_and_then_the_callable_is_itself_again() -> None:
    clock = Clock()

    def put(seconds: float) -> str:
        clock.advance(seconds)
        return f"took {seconds}"

    timed = TimedCall(put, clock.seconds)
    assert timed.call(5.0) == "took 5.0"
    timed.arm()
    assert [timed.call(0.25) for _ in range(SAMPLE_CALLS - 1)] == ["took 0.25"] * (SAMPLE_CALLS - 1)
    timed.call(1.5)
    assert timed.call == put
    timed.call(60.0)
    times = timed.times
    assert (times.longest_ms, times.within(0.5), times.within(0.999)) == (1500, 250, 1500)
    assert "[200~500ms]:99 [500ms~1s]:0 [1~2s]:1 " in times.ranges()


def test_call_that_raises_is_timed_too() -> None:
    timed = TimedCall(int, Clock().seconds)
    timed.arm()
    with pytest.raises(ValueError, match="no number"):
        timed.call("no number")
    assert timed.times.ranges().startswith("[<=0ms]:1 ")


def test_without_calls_all_is_zero() -> None:
    times = CallTimes()
    assert (times.longest_ms, times.within(0.99)) == (0, 0)
    assert times.ranges().startswith("[<=0ms]:0 [0~10ms]:0 ")


def test_limits_belong_to_the_range_before_them() -> None:
    times = CallTimes()
    for elapsed_ms in (0, 1, 10, 11, 10_000, 10_001):
        times.record(elapsed_ms)
    counted = dict(part.rsplit(":", 1) for part in times.ranges().split())
    assert {text for text, count in counted.items() if count != "0"} == {
        "[<=0ms]", "[0~10ms]", "[10~50ms]", "[5~10s]", "[10s~]",
    }  # fmt: skip
    assert counted["[0~10ms]"] == "2"
