"""When a slave's queues follow its log."""

from __future__ import annotations

from typing import Any

from twisted.internet import task
from twisted.trial.unittest import SynchronousTestCase

from twisted_mq.broker.ha.dispatch_behind import READS_FIRST, DispatchBehind


class Turns(task.Clock):
    """A second is a turn: what is to be called at once is called in the next one, as a reactor does it."""

    def callLater(self, when: float, what: Any, *args: Any, **kw: Any) -> Any:
        return super().callLater(max(1, when), what, *args, **kw)


class DispatchBehindTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.clock = Turns()
        self.parts = 1
        self.calls = 0
        self.behind = DispatchBehind(self.clock, self.dispatch)

    def dispatch(self) -> bool:
        self.calls += 1
        self.parts -= 1
        return self.parts > 0

    def turns(self, count: int) -> None:
        for _ in range(count):
            self.clock.advance(1)

    def test_dispatching_waits_for_the_turn_behind_the_bytes(self) -> None:
        self.behind.soon()
        self.turns(1)
        self.assertEqual(self.calls, 0)
        self.turns(1)
        self.assertEqual((self.calls, self.clock.getDelayedCalls()), (1, []))

    def test_all_parts_are_dispatched_a_turn_each(self) -> None:
        self.parts = 5
        self.behind.soon()
        self.turns(6)
        self.assertEqual((self.calls, self.clock.getDelayedCalls()), (5, []))

    def test_bytes_that_never_cease_put_dispatching_off_only_so_long(self) -> None:
        for _ in range(3 * (READS_FIRST + 1)):
            self.parts = 1000
            self.behind.soon()
            self.turns(1)
        self.assertEqual(self.calls, 3)

    def test_what_dispatching_itself_brings_in_is_dispatched(self) -> None:
        def dispatch() -> bool:
            self.calls += 1
            if self.calls == 1:
                behind.soon()
            return False

        behind = DispatchBehind(self.clock, dispatch)
        behind.soon()
        self.turns(4)
        self.assertEqual((self.calls, self.clock.getDelayedCalls()), (2, []))

    def test_nothing_is_dispatched_after_stopping(self) -> None:
        self.behind.soon()
        self.behind.stop()
        self.behind.stop()
        self.turns(3)
        self.assertEqual((self.calls, self.clock.getDelayedCalls()), (0, []))
