from __future__ import annotations

from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from twisted_mq.broker.schedule.delivery_loop import DeliveryLoop


class DeliveryLoopTest(SynchronousTestCase):
    def setUp(self) -> None:
        self.clock = Clock()
        self.calls: list[str] = []
        self.more = [True, True, False]

    def turn(self) -> bool:
        self.calls.append("turn")
        return self.more.pop(0) if self.more else False

    def loop(self, *turns: object) -> DeliveryLoop:
        loop = DeliveryLoop(self.clock, turns or [self.turn], lambda: self.calls.append("after"))
        loop.start()
        return loop

    def test_a_turn_with_more_is_followed_at_once_one_without_after_a_tenth_of_a_second(self) -> None:
        self.loop()
        self.clock.advance(0)
        self.assertEqual(self.calls, ["turn", "after"] * 3)
        self.clock.advance(0.09)
        self.assertEqual(len(self.calls), 6)
        self.clock.advance(0.02)
        self.assertEqual(len(self.calls), 8)

    def test_every_turn_gets_its_call_and_a_failure_is_said_once_and_tried_again(self) -> None:
        well = [False, False, True]

        def fails() -> bool:
            self.calls.append("fails")
            if not well or not well.pop(0):
                raise OSError("disk")
            return False

        self.more = []
        self.loop(fails, self.turn)
        self.clock.advance(0)
        self.clock.advance(0.1)
        self.assertEqual(self.calls, ["fails", "turn", "after"] * 2)
        self.assertEqual(len(self.flushLoggedErrors(OSError)), 1)
        self.clock.pump([0.1, 0.1])
        self.assertEqual(len(self.flushLoggedErrors(OSError)), 1)

    def test_stop_ends_it_also_from_within_a_turn(self) -> None:
        loop = self.loop()
        self.clock.advance(0)
        loop.stop()
        loop.stop()
        self.assertEqual(self.clock.getDelayedCalls(), [])

        def stops() -> bool:
            last.stop()
            return True

        last = DeliveryLoop(self.clock, [stops], lambda: None)
        last.start()
        self.clock.advance(1)
        self.assertEqual(self.clock.getDelayedCalls(), [])
