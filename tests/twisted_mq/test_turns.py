"""Work in slices, by lane."""

from __future__ import annotations

from typing import Any

import pytest
from twisted.internet.defer import Deferred, succeed
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from twisted_mq import turns
from twisted_mq.protocol.errors import BrokerError
from twisted_mq.remoting.rotation import Rotation
from twisted_mq.turns import MAX_HELD_BYTES, MAX_WAITING, Room, Turns, Work, outcome


class TurnsTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.clock = Clock()
        self.turns = Turns(Rotation(self.clock))
        self.steps: list[str] = []

    def work(self, name: str, slices: int) -> Work[str]:
        for number in range(slices):
            self.steps.append(f"{name}{number}")
            if number < slices - 1:
                yield None
        return name

    def finish(self, *results: Any) -> list[Any]:
        for _ in range(100):
            self.clock.advance(0)
        return [self.successResultOf(one) for one in results]

    def test_work_of_one_slice_is_done_at_once(self) -> None:
        self.assertEqual(self.turns.run("a", self.work("a", 1)), "a")

    def test_work_of_a_lane_is_done_in_its_order_and_other_lanes_go_on(self) -> None:
        first, second = self.turns.run("a", self.work("a", 3)), self.turns.run("a", self.work("b", 1))
        self.assertEqual(self.turns.run("other", self.work("c", 1)), "c")
        self.assertEqual(self.steps, ["a0", "c0"])
        self.assertEqual(self.finish(first, second), ["a", "b"])
        self.assertEqual(self.steps, ["a0", "c0", "a1", "a2", "b0"])
        self.assertEqual(self.turns.run("a", self.work("d", 1)), "d")

    def test_other_lanes_go_on_between_work_that_is_done_at_once(self) -> None:
        self.patch(turns, "SLICE_SECONDS", 0.0)
        held: Deferred[None] = Deferred()
        results = [self.turns.run("a", outcome(held)), self.turns.run("other", self.work("x", 4))]
        results += [self.turns.run("a", self.work(name, 1)) for name in "bcd"]
        held.callback(None)
        self.assertEqual(self.finish(*results), [None, "x", "b", "c", "d"])
        self.assertEqual(self.steps, ["x0", "b0", "x1", "c0", "x2", "d0", "x3"])

    def test_failed_work_fails_alone(self) -> None:
        def failing() -> Work[str]:
            yield None
            raise BrokerError(1, "no")

        failed, after = self.turns.run("a", failing()), self.turns.run("a", self.work("b", 1))
        self.assertEqual(self.finish(after), ["b"])
        self.failureResultOf(failed, BrokerError)

    def test_fault_of_the_first_slice_is_raised(self) -> None:
        def failing() -> Work[str]:
            raise BrokerError(1, "no")
            yield None

        with pytest.raises(BrokerError):
            self.turns.run("a", failing())

    def test_work_waits_for_what_it_yields(self) -> None:
        disk: Deferred[str] = Deferred()

        def waiting(later: Deferred[str]) -> Work[str]:
            return (yield from outcome(later)) + "!"

        self.assertEqual(self.turns.run("a", waiting(succeed("now"))), "now!")
        result, after = self.turns.run("a", waiting(disk)), self.turns.run("a", self.work("b", 1))
        self.finish()
        self.assertEqual(self.steps, [])
        disk.callback("written")
        self.assertEqual(self.finish(result, after), ["written!", "b"])

    def test_failure_that_work_waits_for_is_its_own(self) -> None:
        disk: Deferred[str] = Deferred()

        def waiting() -> Work[str]:
            try:
                return (yield from outcome(disk))
            except OSError as error:
                return str(error)

        result = self.turns.run("a", waiting())
        disk.errback(OSError("full"))
        self.assertEqual(self.finish(result), ["full"])

    def test_lane_is_bounded(self) -> None:
        for _ in range(MAX_WAITING):
            self.turns.run("a", self.work("a", 2))
        with pytest.raises(BrokerError, match="1000 requests wait for a"):
            self.turns.run("a", self.work("a", 2))

    def test_large_bodies_are_read_two_at_once_and_bounded(self) -> None:
        room = Room()
        results = [self.turns.run(name, room.keep(10, self.work(name, 5))) for name in "abc"]
        self.assertEqual(self.steps, ["a0", "b0"])
        with pytest.raises(BrokerError, match="30 bytes of requests wait"):
            room.keep(MAX_HELD_BYTES, self.work("d", 1))
        self.finish(*results)
        self.assertEqual(self.turns.run("d", room.keep(MAX_HELD_BYTES, self.work("d", 1))), "d")

    def test_stopped_turns_run_nothing_any_more(self) -> None:
        self.turns.run("a", self.work("a", 3))
        self.turns.stop()
        self.finish()
        self.assertEqual(self.steps, ["a0"])
        self.assertEqual(self.clock.getDelayedCalls(), [])
