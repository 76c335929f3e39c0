"""Counters over a minute, an hour and a day."""

from __future__ import annotations

from twisted_mq.broker.statistics.counters import DAY, HOUR, MINUTE, Counter, Counters, Rate, Sampler


def test_minute_spans_the_last_six_intervals() -> None:
    sampler, counter = Sampler(0), Counter()
    for turn in range(1, 11):
        counter.add(messages=turn, size_bytes=100 * turn)
        sampler.sample(turn * 10_000, [counter])
    assert sampler.rate(counter, MINUTE, 0) == Rate(sum=45, tps=0.75, average=7.5)
    assert sampler.rate(counter, MINUTE, 1) == Rate(sum=4500, tps=75.0, average=750.0)
    assert sampler.rate(counter, HOUR, 0) == Rate()


def test_counter_that_came_later_counts_from_the_sample_before_it() -> None:
    sampler, old, young = Sampler(0), Counter(), Counter()
    for turn in range(1, 4):
        sampler.sample(turn * 10_000, [old])
    young.add(30, 0)
    sampler.sample(40_000, [old, young])
    assert sampler.rate(young, MINUTE, 0) == Rate(sum=30, tps=3.0, average=30.0)


def test_hour_and_day_have_longer_intervals() -> None:
    sampler, counter = Sampler(0), Counter()
    for minutes in range(10, 26 * 60 + 1, 10):
        counter.add(60, 0)
        sampler.sample(minutes * 60_000, [counter])
    assert sampler.rate(counter, HOUR, 0) == Rate(sum=360, tps=0.1, average=60.0)
    assert sampler.rate(counter, DAY, 0) == Rate(sum=24 * 360, tps=0.1, average=60.0)


def test_idle_counter_keeps_one_sample() -> None:
    sampler, counter = Sampler(0), Counter()
    counter.add(1, 1)
    for turn in range(1, 20):
        sampler.sample(turn * 10_000, [counter])
    samples = counter.samples[MINUTE]
    assert (len(samples), len({id(sample) for sample in samples})) == (7, 1)


def test_early_call_samples_nothing() -> None:
    sampler, counter = Sampler(0), Counter()
    sampler.sample(9_999, [counter])
    assert counter.samples == ([], [], [])


def test_what_is_forgotten_stays_in_the_sum() -> None:
    counters = Counters()
    counters["T@G"].add(3, 30)
    counters["T@H"].add(4, 40)
    counters["U@G"].add(5, 50)
    counters.forget_prefix("T@")
    counters.forget_suffix("@X")
    counters.forget("U@G")
    counters.forget("never")
    assert list(counters) == [""]
    assert (counters[""].messages, counters[""].bytes, counters[""].times) == (12, 120, 3)
