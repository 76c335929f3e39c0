"""When a slave's queues follow its log."""

from __future__ import annotations

from twisted.internet import task
from twisted.trial.unittest import SynchronousTestCase

from twisted_mq.broker.ha.dispatch_behind import MANY_BYTES, PAUSE_SECONDS, PAUSES_PUT_OFF, DispatchBehind


class DispatchBehindTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.clock = task.Clock()
        self.parts = 1
        self.calls = 0
        self.behind = DispatchBehind(self.clock, self.dispatch)

    def dispatch(self) -> bool:
        self.calls += 1
        self.parts -= 1
        return self.parts > 0

    def pauses(self, count: int) -> None:
        self.clock.pump([PAUSE_SECONDS] * count)

    def test_bytes_are_dispatched_after_a_pause(self) -> None:
        self.behind.soon(100)
        self.clock.advance(PAUSE_SECONDS / 2)
        self.behind.soon(100)
        self.assertEqual(self.calls, 0)
        self.clock.advance(PAUSE_SECONDS / 2)
        self.assertEqual((self.calls, self.clock.getDelayedCalls()), (1, []))

    def test_all_parts_are_dispatched(self) -> None:
        self.parts = 5
        self.behind.soon(100)
        self.pauses(1)
        self.assertEqual((self.calls, self.clock.getDelayedCalls()), (5, []))

    def test_many_bytes_put_dispatching_off_until_fewer_come(self) -> None:
        for _ in range(3):
            self.behind.soon(MANY_BYTES)
            self.pauses(1)
        self.assertEqual(self.calls, 0)
        self.behind.soon(MANY_BYTES - 1)
        self.pauses(1)
        self.assertEqual((self.calls, self.clock.getDelayedCalls()), (1, []))

    def test_many_bytes_that_never_cease_put_dispatching_off_only_so_long(self) -> None:
        for _ in range(3 * (PAUSES_PUT_OFF + 1)):
            self.parts = 1
            self.behind.soon(MANY_BYTES)
            self.pauses(1)
        self.assertEqual(self.calls, 3)

    def test_what_dispatching_itself_brings_in_is_dispatched(self) -> None:
        def dispatch() -> bool:
            self.calls += 1
            if self.calls == 1:
                behind.soon(100)
            return False

        behind = DispatchBehind(self.clock, dispatch)
        behind.soon(100)
        self.pauses(2)
        self.assertEqual((self.calls, self.clock.getDelayedCalls()), (2, []))

    def test_nothing_is_dispatched_after_stopping(self) -> None:
        self.behind.soon(100)
        self.behind.stop()
        self.behind.stop()
        self.pauses(3)
        self.assertEqual((self.calls, self.clock.getDelayedCalls()), (0, []))

    def test_what_comes_after_stopping_is_not_dispatched(self) -> None:
        """A flush that was under way tells of its end when the store may be closed."""
        self.behind.stop()
        self.behind.soon(100)
        self.pauses(3)
        self.assertEqual((self.calls, self.clock.getDelayedCalls()), (0, []))
