"""Counters over a minute, an hour and a day."""

from __future__ import annotations

import pytest

from twisted_mq.broker.statistics import counters
from twisted_mq.broker.statistics.counters import (
    DAY,
    HOUR,
    MINUTE,
    Counter,
    Counters,
    Puts,
    Rate,
    Sampler,
    TopicPuts,
)


def test_minute_spans_the_last_six_intervals() -> None:
    sampler, counter = Sampler(0), Counter()
    for turn in range(1, 11):
        counter.add(messages=turn, size_bytes=100 * turn)
        list(sampler.sample(turn * 10_000, [counter]))
    assert sampler.rate(counter, MINUTE, 0) == Rate(sum=45, tps=0.75, average=7.5)
    assert sampler.rate(counter, MINUTE, 1) == Rate(sum=4500, tps=75.0, average=750.0)
    assert sampler.rate(counter, HOUR, 0) == Rate()


def test_counter_that_came_later_counts_from_the_sample_before_it() -> None:
    sampler, old, young = Sampler(0), Counter(), Counter()
    for turn in range(1, 4):
        list(sampler.sample(turn * 10_000, [old]))
    young.add(30, 0)
    list(sampler.sample(40_000, [old, young]))
    assert sampler.rate(young, MINUTE, 0) == Rate(sum=30, tps=3.0, average=30.0)


def test_hour_and_day_have_longer_intervals() -> None:
    sampler, counter = Sampler(0), Counter()
    for minutes in range(10, 26 * 60 + 1, 10):
        counter.add(60, 0)
        list(sampler.sample(minutes * 60_000, [counter]))
    assert sampler.rate(counter, HOUR, 0) == Rate(sum=360, tps=0.1, average=60.0)
    assert sampler.rate(counter, DAY, 0) == Rate(sum=24 * 360, tps=0.1, average=60.0)


def test_idle_counter_keeps_one_sample() -> None:
    sampler, counter = Sampler(0), Counter()
    counter.add(1, 1)
    for turn in range(1, 20):
        list(sampler.sample(turn * 10_000, [counter]))
    samples = counter.samples[MINUTE]
    assert (len(samples), len({id(sample) for sample in samples})) == (7, 1)


def test_early_call_samples_nothing() -> None:
    sampler, counter = Sampler(0), Counter()
    list(sampler.sample(9_999, [counter]))
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


def test_a_topic_is_the_sum_of_its_queues_as_far_back_as_the_oldest() -> None:
    sampler, puts = Sampler(0), Puts()
    for turn in range(1, 4):
        puts["T"][0].add(2, 20)
        if turn == 3:
            puts["T"][1].add(6, 60, 9)
        list(sampler.sample(turn * 10_000, puts["T"].parts))
    assert sampler.rate(puts["T"], MINUTE, 0) == Rate(sum=12, tps=0.4, average=3.0)
    assert sampler.rate(puts["T"], MINUTE, 2) == Rate(sum=9, tps=0.3, average=2.25)
    assert sampler.rate(puts["never"], MINUTE, 0) == Rate()
    assert (puts["T"].messages, puts["T"].bytes, puts["T"].times) == (12, 120, 4)


def test_small_sends_are_told_from_the_counts_and_others_apart() -> None:
    puts = TopicPuts()
    for _ in range(3):
        puts[0].add(1, 300)
    puts[1].add(4, 8000)
    puts.record(8000, 4)
    puts[1].add(1, 500)
    puts.set_apart(500)
    sizes = puts.sizes()
    assert (sizes.counts, sizes.total) == ([3, 1, 0, 0, 0, 0, 0], 3 * 300 + 2000)
    assert (puts.messages, puts.bytes) == (8, 9400)


def test_names_past_the_limit_count_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counters, "MOST_NAMES", 3)
    by_name = Counters()
    for name in ("a", "b", "c" * (counters.MOST_NAME + 1), "d", "e", "a"):
        by_name[name].add(1, 0)
    assert {name: counter.messages for name, counter in by_name.items()} == {"a": 2, "b": 1, counters.GONE: 3}


def test_many_counters_are_sampled_in_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counters, "COUNTERS_OF_SLICE", 2)
    many = [Counter() for _ in range(5)]
    slices = Sampler(0).sample(10_000, many)
    seen = []
    for _ in slices:
        seen.append(sum(bool(counter.samples[0]) for counter in many))
    assert (seen, all(counter.samples[0] for counter in many)) == ([2, 4], True)
