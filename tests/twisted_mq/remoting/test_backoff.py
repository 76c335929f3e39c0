"""Rest time of an address after failures."""

from __future__ import annotations

import random

from twisted_mq.remoting.backoff import MOST_SECONDS, Backoff


class Longest(random.Random):
    def uniform(self, a: float, b: float) -> float:
        return b


def test_rests_double_up_to_the_most_and_end_with_a_connection() -> None:
    backoff, now, rests = Backoff(Longest()), 100.0, []
    for _ in range(7):
        backoff.failed("a:1", "refused", now)
        until = now
        while backoff.resting("a:1", until) is not None:
            until = round(until + 0.05, 2)
        rests.append(round(until - now, 2))
        now = until
    assert rests == [0.1, 0.2, 0.4, MOST_SECONDS, MOST_SECONDS, MOST_SECONDS, MOST_SECONDS]
    backoff.failed("a:1", "refused", now)
    backoff.connected("a:1")
    assert backoff.resting("a:1", now) is None


def test_rest_names_the_reason_and_when_it_ends() -> None:
    backoff = Backoff(Longest())
    backoff.failed("a:1", "Connection refused", 10.0)
    assert backoff.resting("a:1", 10.0) == "Connection refused (tried 1 times, retry in 0.1 s)"
    assert backoff.resting("b:1", 10.0) is None


def test_jitter_shortens_a_rest_by_a_half_at_most() -> None:
    ends = set()
    for seed in range(50):
        backoff = Backoff(random.Random(seed))
        backoff.failed("a:1", "refused", 0.0)
        ends.add(next(ms for ms in range(1000) if backoff.resting("a:1", ms / 1000) is None))
    assert len(ends) > 10
    assert 50 <= min(ends) <= max(ends) <= 101
