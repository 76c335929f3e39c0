import pytest

from twisted_mq.broker.clients import rebalance_lock
from twisted_mq.broker.clients.rebalance_lock import RebalanceLockManager


def test_first_client_gets_all_queues() -> None:
    locks = RebalanceLockManager()
    assert locks.try_lock("g", ["q0", "q1"], "a", 0) == ["q0", "q1"]


def test_second_client_gets_only_what_is_free() -> None:
    locks = RebalanceLockManager()
    locks.try_lock("g", ["q0"], "a", 0)
    assert locks.try_lock("g", ["q0", "q1"], "b", 1) == ["q1"]


def test_renewed_lock_is_kept_past_its_first_expiry() -> None:
    locks = RebalanceLockManager()
    locks.try_lock("g", ["q0"], "a", 0)
    locks.try_lock("g", ["q0"], "a", 50_000)
    assert locks.try_lock("g", ["q0"], "b", 100_000) == []
    assert locks.owner("g", "q0", 100_000) == "a"


def test_expired_lock_changes_its_owner() -> None:
    locks = RebalanceLockManager()
    locks.try_lock("g", ["q0"], "a", 0)
    assert locks.try_lock("g", ["q0"], "b", 60_000) == []
    assert locks.try_lock("g", ["q0"], "b", 60_001) == ["q0"]
    assert locks.owner("g", "q0", 60_001) == "b"


def test_unlock_frees_own_locks_alone() -> None:
    locks = RebalanceLockManager()
    locks.try_lock("g", ["q0", "q1"], "a", 0)
    locks.unlock("g", ["q0", "q1"], "b")
    assert locks.owner("g", "q0", 1) == "a"
    locks.unlock("g", ["q0"], "a")
    assert (locks.owner("g", "q0", 1), locks.owner("g", "q1", 1)) == (None, "a")


def test_groups_lock_apart_and_all_expired_is_seen() -> None:
    locks = RebalanceLockManager()
    locks.try_lock("g", ["q0"], "a", 0)
    assert locks.try_lock("h", ["q0"], "b", 0) == ["q0"]
    assert [locks.is_all_expired("g", now) for now in (60_000, 60_001)] == [False, True]
    assert locks.is_all_expired("unknown", 0)


def test_locks_that_nobody_renews_are_forgotten() -> None:
    locks = RebalanceLockManager()
    locks.try_lock("gone", ["q0", "q1"], "a", 0)
    locks.try_lock("there", ["q0"], "a", 50_000)
    locks.forget_expired(60_001)
    assert list(locks._groups) == ["there"]


def test_an_address_has_at_most_half_of_what_the_others_leave() -> None:
    locks = RebalanceLockManager(most=8)
    queues = [f"q{number}" for number in range(10)]
    assert len(locks.try_lock("g", queues, "a", 0, "10.0.0.1")) == 4
    assert len(locks.try_lock("h", queues, "b", 0, "10.0.0.1")) == 0
    assert len(locks.try_lock("i", queues, "c", 0, "10.0.0.2")) == 2
    assert list(locks._groups) == ["g", "i"]
    assert len(locks.try_lock("g", queues, "a", 1, "10.0.0.1")) == 4
    locks.unlock("g", queues[:2], "a")
    assert (locks.count, len(locks.try_lock("i", queues, "c", 1, "10.0.0.2"))) == (4, 3)


def test_a_lock_that_changes_its_owner_counts_for_the_new_one() -> None:
    locks = RebalanceLockManager(most=8)
    queues = [f"q{number}" for number in range(4)]
    locks.try_lock("g", queues, "a", 0, "10.0.0.1")
    assert locks.try_lock("g", queues, "b", 60_001, "10.0.0.2") == queues
    assert (locks.count, dict(locks._held_by)) == (4, {"10.0.0.2": 4})
    locks.forget_expired(120_003)
    assert (locks.count, dict(locks._held_by), locks._groups) == (0, {}, {})


def test_few_expired_locks_are_freed_in_one_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rebalance_lock, "MOST_FORGOTTEN", 3)
    locks = RebalanceLockManager()
    locks.try_lock("g", ["q0", "q1"], "a", 0)
    locks.try_lock("h", ["q0", "q1"], "a", 0)
    locks.forget_expired(60_001)
    assert (locks.count, locks.is_all_expired("h", 60_001)) == (1, True)
    locks.forget_expired(60_001)
    assert locks.count == 0
