"""Worlds of gRPC clients keep every promise, and faults that are put in on purpose break one."""

from __future__ import annotations

import attrs
import pytest

from tests.simulation.grpc_world import Outcome, simulate
from twisted_mq.proxy.handles import Handle
from twisted_mq.proxy.receiving import Receiving
from twisted_mq.proxy.renewal import Renewal
from twisted_mq.proxy.sending import Sending

SEEDS = range(1, 7)
MUTANT_SEEDS = range(1, 13)
CALM_SEEDS = range(1, 3)


def test_seeds_keep_every_promise() -> None:
    outcomes = [simulate(seed) for seed in SEEDS]
    broken = [(one.seed, one.broken, one.history[-40:]) for one in outcomes if one.broken]
    assert not broken
    assert all(one.sent and one.handed_out >= one.sent for one in outcomes)
    assert sum(one.renewed for one in outcomes) > 0


def test_without_faults_nothing_acknowledged_comes_back() -> None:
    outcomes = [simulate(seed, faulty=False) for seed in CALM_SEEDS]
    assert [one.broken for one in outcomes] == [""] * len(CALM_SEEDS)
    assert all(one.renewed and not one.faults for one in outcomes)


def test_a_seed_is_the_same_world_each_time() -> None:
    assert simulate(3).trace == simulate(3).trace != simulate(4).trace


def first_broken() -> Outcome | None:
    """Return the first seed that breaks a promise."""
    return next((one for one in map(simulate, MUTANT_SEEDS) if one.broken), None)


def test_renewal_that_does_nothing_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Renewal, "look", lambda self: None)
    found = first_broken()
    assert found is not None
    assert "while it was at" in found.broken


def test_acknowledgement_that_reaches_no_broker_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    async def nothing(self: Receiving, *arguments: object) -> None: ...

    monkeypatch.setattr(Receiving, "_ack", nothing)
    found = first_broken()
    assert found is not None
    assert "after it was acknowledged" in found.broken


def test_new_handle_that_names_the_check_point_of_the_pop_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the first message of a pop could be acknowledged by it."""
    renewed = Handle.renewed

    def of_the_pop(self: Handle, *changed: int) -> Handle:
        made = renewed(self, *changed)
        return attrs.evolve(made, receipt=attrs.evolve(made.receipt, start_offset=self.receipt.start_offset))

    monkeypatch.setattr(Handle, "renewed", of_the_pop)
    assert "after it was acknowledged" in simulate(CALM_SEEDS[0], faulty=False).broken


def test_message_group_without_a_queue_of_its_own_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def round_robin(self: Sending, queues: list[tuple[str, int]], sent: object) -> tuple[str, int]:
        return queues[self.turn.take() % len(queues)]

    monkeypatch.setattr(Sending, "_queue", round_robin)
    found = first_broken()
    assert found is not None
    assert "was handed out before" in found.broken
