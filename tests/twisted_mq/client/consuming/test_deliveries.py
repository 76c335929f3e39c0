"""Messages handed out one by one: who takes them, how each ends, and who is woken."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from twisted.internet import defer
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from tests.twisted_mq.client.consuming.test_consume_service import message
from twisted_mq.client.consuming.consumer_options import (
    ConsumeContext,
    ConsumeOrderlyContext,
    ConsumeOrderlyStatus,
    ConsumeStatus,
)
from twisted_mq.client.consuming.deliveries import CONCURRENTLY, ORDERED, Deliveries, DeliveryEnded
from twisted_mq.protocol.bodies import MessageQueue

QUEUE = MessageQueue("T", "broker-a", 0)


class DeliveriesCase(SynchronousTestCase):
    def setUp(self) -> None:
        self.clock = Clock()
        self.ours = True
        self.deliveries: Deliveries[Any, Any] = Deliveries(
            self.clock, "g", CONCURRENTLY, limit=2, timeout_seconds=60, is_ours=lambda queue: self.ours
        )

    def call(self, offset: int) -> tuple[defer.Deferred[Any], ConsumeContext]:
        context = ConsumeContext(QUEUE)
        return self.deliveries.listener([message(offset)], context), context

    def test_messages_are_taken_in_the_order_of_the_calls_and_settled_in_any(self) -> None:
        (first, _), (second, context) = self.call(1), self.call(2)
        one, other = self.deliveries.take("a"), self.deliveries.take("b")
        assert one is not None and other is not None
        self.assertEqual((one.message.queue_offset, other.message.queue_offset), (1, 2))
        other.refuse(delay_level=3)
        one.acknowledge()
        self.assertEqual(self.successResultOf(second), ConsumeStatus.RECONSUME_LATER)
        self.assertEqual(self.successResultOf(first), ConsumeStatus.CONSUME_SUCCESS)
        self.assertEqual(context.delay_level_when_next_consume, 3)
        self.deliveries.close()
        self.assertEqual((self.deliveries.taken(), self.clock.getDelayedCalls()), ([], []))

    def test_the_timeout_runs_from_the_moment_of_taking(self) -> None:
        answer, _ = self.call(1)
        self.clock.advance(3600)
        delivery = self.deliveries.take("a")
        assert delivery is not None
        self.clock.advance(59)
        self.assertNoResult(answer)
        self.clock.advance(1)
        self.failureResultOf(answer, defer.TimeoutError)
        self.assertRaises(DeliveryEnded, delivery.acknowledge)

    def test_one_who_waits_is_woken_for_each_message(self) -> None:
        first, second = self.deliveries.wait(), self.deliveries.wait()
        self.call(1)
        self.successResultOf(first)
        self.assertNoResult(second)
        self.deliveries.wake()  # as the first does, that was cancelled meanwhile
        self.successResultOf(second)
        self.successResultOf(self.deliveries.wait())  # what is there is not waited for

    def test_who_gave_up_waiting_is_not_woken(self) -> None:
        first, second = self.deliveries.wait(), self.deliveries.wait()
        first.cancel()
        self.failureResultOf(first, defer.CancelledError)
        self.call(1)
        self.successResultOf(second)

    def test_what_went_to_another_consumer_is_not_handed_out(self) -> None:
        answer, _ = self.call(1)
        self.ours = False
        self.assertIsNone(self.deliveries.take("a"))
        self.assertEqual(self.successResultOf(answer), ConsumeStatus.RECONSUME_LATER)  # which a dropped queue ignores

    def test_closed_it_gives_up_what_nobody_took_and_wakes_all(self) -> None:
        taken_answer, _ = self.call(1)
        taken = self.deliveries.take("a")
        waiting_answer, _ = self.call(2)
        self.deliveries.close()
        self.deliveries.close()
        self.failureResultOf(waiting_answer, defer.CancelledError)
        self.assertIsNone(self.deliveries.take("b"))
        self.successResultOf(self.deliveries.wait())
        self.failureResultOf(self.call(3)[0], defer.CancelledError)
        self.assertNoResult(taken_answer)
        self.assertEqual(self.deliveries.taken(), [taken])
        assert taken is not None
        taken.acknowledge()
        self.assertEqual(self.successResultOf(taken_answer), ConsumeStatus.CONSUME_SUCCESS)

    def test_a_call_that_is_cancelled_ends_its_delivery(self) -> None:
        answer, _ = self.call(1)
        delivery = self.deliveries.take("a")
        answer.cancel()
        self.failureResultOf(answer, defer.CancelledError)
        assert delivery is not None
        self.assertRaisesRegex(DeliveryEnded, "the consumer stopped; it will be delivered again", delivery.acknowledge)
        self.deliveries.close()
        self.assertEqual(self.clock.getDelayedCalls(), [])

    def test_each_message_has_its_own_time_and_all_one_timer(self) -> None:
        answers = []
        for offset in range(3):
            answers.append(self.call(offset)[0])
            self.clock.advance(1)
            self.deliveries.take("a")
        self.assertEqual([call.getTime() for call in self.clock.getDelayedCalls()], [61])
        self.clock.advance(58)
        self.failureResultOf(answers[0], defer.TimeoutError)
        self.deliveries.taken()[0].acknowledge()
        self.assertEqual(self.successResultOf(answers[1]), ConsumeStatus.CONSUME_SUCCESS)
        self.clock.advance(1)
        self.assertNoResult(answers[2])
        self.clock.advance(1)
        self.failureResultOf(answers[2], defer.TimeoutError)
        self.assertEqual(self.clock.getDelayedCalls(), [])

    def test_the_timer_ends_with_the_last_message_of_a_closed_consumer(self) -> None:
        for offset in range(2):
            self.call(offset)
            self.deliveries.take("a")
        self.deliveries.close()
        for left in (1, 0):
            self.deliveries.taken()[0].acknowledge()
            self.assertEqual(len(self.clock.getDelayedCalls()), left)

    def test_an_ordered_call_that_is_given_up_is_answered(self) -> None:
        ordered: Deliveries[Any, Any] = Deliveries(self.clock, "g", ORDERED, limit=9, timeout_seconds=60)
        context = ConsumeOrderlyContext(QUEUE)
        answer = ordered.listener([message(1)], context)
        ordered.close()
        self.assertEqual(self.successResultOf(answer), ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT)
        self.assertEqual(context.suspend_current_queue_seconds, 0.0)


class OfThreads(DeliveriesCase):
    """Deliveries that another thread takes and settles; `act` gives the reactor's thread its turn."""

    def setUp(self) -> None:
        super().setUp()
        self.due: list[Callable[[], object]] = []

    def later(self, function: Callable[..., object], *arguments: object) -> None:
        self.due.append(partial(function, *arguments))

    def act(self) -> None:
        due, self.due = self.due, []
        for call in due:
            call()

    def test_it_is_decided_at_once_and_told_later(self) -> None:
        answer, _ = self.call(1)
        delivery = self.deliveries.take("a", self.later)
        assert delivery is not None
        self.assertEqual(self.clock.getDelayedCalls(), [])
        delivery.acknowledge(self.later)
        self.assertRaisesRegex(DeliveryEnded, "it was acknowledged", delivery.refuse)
        self.assertNoResult(answer)
        self.assertEqual(self.deliveries.taken(), [])
        self.act()
        self.assertEqual(self.successResultOf(answer), ConsumeStatus.CONSUME_SUCCESS)

    def test_what_was_settled_counts_though_the_consumer_stops_before_it_is_told(self) -> None:
        answer, context = self.call(1)
        delivery = self.deliveries.take("a", self.later)
        assert delivery is not None
        delivery.refuse(3, act=self.later)
        answer.cancel()
        self.assertEqual(self.successResultOf(answer), ConsumeStatus.RECONSUME_LATER)
        self.assertEqual(context.delay_level_when_next_consume, 3)
        self.deliveries.close()
        self.act()
        self.assertEqual(self.clock.getDelayedCalls(), [])

    def test_one_timer_is_set_however_many_are_taken_meanwhile(self) -> None:
        answers = [self.call(offset)[0] for offset in range(2)]
        for _ in answers:
            self.deliveries.take("a", self.later)
        self.act()
        self.assertEqual(len(self.clock.getDelayedCalls()), 1)
        self.clock.advance(60)
        for answer in answers:
            self.failureResultOf(answer, defer.TimeoutError)

    def test_a_queue_that_went_is_passed_over_on_the_reactors_thread(self) -> None:
        answer, _ = self.call(1)
        self.ours = False
        self.assertIsNone(self.deliveries.take("a", self.later))
        self.assertNoResult(answer)
        self.act()
        self.assertEqual(self.successResultOf(answer), ConsumeStatus.RECONSUME_LATER)
