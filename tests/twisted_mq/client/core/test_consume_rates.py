"""A consumer's rates by topic: in the last minute, in the last hour, and of a topic without messages."""

from __future__ import annotations

from twisted_mq.client.core.consume_rates import ConsumeRates
from twisted_mq.protocol.bodies import ConsumeStatus


def minutes(rates: ConsumeRates, begin: float, count: int) -> float:
    """Sample as a client does that commits every five seconds; when it did last."""
    now = begin
    for _ in range(count * 12):
        rates.sample(now)
        now += 5.0
    return now - 5.0


def test_rates_are_those_of_the_last_minute() -> None:
    rates = ConsumeRates()
    rates.sample(1000.0)
    rates.found("T", 32, 0.25)
    rates.found("T", 8, 0.75)
    rates.called("T", 30, 0, 0.004)
    rates.called("T", 0, 10, 0.002)
    assert rates.status("T", 1020.0) == ConsumeStatus(
        pull_rt=500.0, pull_tps=2.0, consume_rt=3.0, consume_ok_tps=1.5, consume_failed_tps=0.5, consume_failed_msgs=10
    )


def test_what_is_older_is_left_out_but_for_the_hours_figures() -> None:
    rates = ConsumeRates()
    rates.sample(0.0)
    rates.found("T", 32, 0.25)
    rates.called("T", 0, 32, 0.004)
    now = minutes(rates, 5.0, 3)
    assert rates.status("T", now) == ConsumeStatus(consume_rt=4.0, consume_failed_msgs=32)
    now = minutes(rates, now + 5.0, 80)
    assert rates.status("T", now) == ConsumeStatus()


def test_nothing_is_told_before_the_first_sample_but_times_and_counts() -> None:
    rates = ConsumeRates()
    rates.called("T", 0, 1, 0.25)
    assert rates.status("T", 5.0) == ConsumeStatus(consume_rt=250.0, consume_failed_msgs=1)
    assert rates.status("other", 5.0) == ConsumeStatus()
