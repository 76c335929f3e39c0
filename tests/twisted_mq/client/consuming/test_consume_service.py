"""Calling the listener, and what its answers lead to."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from twisted.internet import defer
from twisted.internet.task import Clock
from twisted.logger import LogLevel, capturedLogs
from twisted.trial.unittest import SynchronousTestCase

from twisted_mq.client.consuming.call_pump import CALLS_A_TURN
from twisted_mq.client.consuming.consume_service import ConsumeService
from twisted_mq.client.consuming.consumer_options import ConsumeContext, ConsumerOptions, ConsumeStatus, MessageModel
from twisted_mq.client.consuming.listener_calls import ListenerCalls
from twisted_mq.client.consuming.offset_store import OffsetStore
from twisted_mq.client.consuming.process_queue import ProcessQueue
from twisted_mq.protocol.bodies import MessageQueue
from twisted_mq.protocol.messages.message import MessageExt
from twisted_mq.remoting.errors import RemotingSendError

OK, LATER = ConsumeStatus.CONSUME_SUCCESS, ConsumeStatus.RECONSUME_LATER
QUEUE = MessageQueue("T", "broker-a", 0)


def message(offset: int, topic: str = "T", **properties: str) -> MessageExt:
    return MessageExt(
        topic=topic, queue_id=0, queue_offset=offset, physical_offset=offset * 100, store_size=100, body_crc=0,
        sys_flag=0, flag=0, born_timestamp=1, born_host="127.0.0.1:1", store_timestamp=2, store_host="127.0.0.1:2",
        reconsume_times=0, prepared_transaction_offset=0, properties=properties, body=b"x", msg_id=f"ID{offset}",
    )  # fmt: skip


class ConsumeCase(SynchronousTestCase):
    def setUp(self) -> None:
        self.clock = Clock()
        self.calls: list[tuple[list[MessageExt], ConsumeContext]] = []
        self.answer: Any = OK
        self.sent_back: list[tuple[int, int]] = []
        self.back_error: Exception | None = None
        self.offsets = OffsetStore()
        self.held = ProcessQueue()

    def service(self, **options: Any) -> ConsumeService:
        chosen = ConsumerOptions(**options)
        calls = ListenerCalls(self.clock, self._listen, "g", chosen.consume_timeout_seconds, LATER)
        return ConsumeService(calls, chosen, self.offsets, self._send_back)

    def _listen(self, messages: list[MessageExt], context: ConsumeContext) -> Any:
        self.calls.append((messages, context))
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer(messages, context) if callable(self.answer) else self.answer

    async def _send_back(self, message: MessageExt, queue: MessageQueue, delay_level: int) -> None:
        if self.back_error is not None:
            raise self.back_error
        self.sent_back.append((message.queue_offset, delay_level))

    def submit(self, service: ConsumeService, *messages: MessageExt) -> None:
        self.held.put(messages)
        service.submit(messages, self.held, QUEUE)

    def offsets_seen(self) -> list[list[int]]:
        return [[one.queue_offset for one in messages] for messages, _ in self.calls]

    @property
    def committed(self) -> int | None:
        return self.offsets.remembered(QUEUE)


class Answers(ConsumeCase):
    def test_consumed_messages_leave_and_their_offset_is_remembered(self) -> None:
        self.submit(self.service(), message(0), message(1))
        self.assertEqual((self.offsets_seen(), self.committed, self.held.count), ([[0], [1]], 2, 0))

    def test_calls_get_as_many_messages_as_configured(self) -> None:
        self.submit(self.service(consume_message_batch_max_size=2), *map(message, range(5)))
        self.assertEqual(self.offsets_seen(), [[0, 1], [2, 3], [4]])

    def test_listener_may_answer_with_any_awaitable(self) -> None:
        class Later:
            def __await__(self) -> Generator[Any, Any, ConsumeStatus]:
                return (yield from waiting.__await__())

        waiting: defer.Deferred[ConsumeStatus] = defer.Deferred()
        self.answer = Later()
        self.submit(self.service(), message(0))
        self.assertEqual(self.committed, None)
        waiting.callback(OK)
        self.assertEqual(self.committed, 1)

    def test_async_listener_is_awaited(self) -> None:
        waiting: list[defer.Deferred[Any]] = []

        async def listen(messages: Any, context: Any) -> ConsumeStatus:
            waiting.append(defer.Deferred())
            await waiting[-1]
            return OK

        self.answer = listen
        self.submit(self.service(), message(0), message(1))
        self.assertEqual(self.committed, None)
        waiting[1].callback(None)
        self.assertEqual(self.committed, 0)
        waiting[0].callback(None)
        self.assertEqual(self.committed, 2)
        self.assertEqual(self.clock.getDelayedCalls(), [])

    def test_message_to_consume_later_goes_back_and_counts_as_done_here(self) -> None:
        self.answer = LATER
        self.submit(self.service(), message(0))
        self.assertEqual((self.sent_back, self.committed), ([(0, 0)], 1))

    def test_listener_chooses_the_delay_level(self) -> None:
        def listen(messages: Any, context: ConsumeContext) -> ConsumeStatus:
            context.delay_level_when_next_consume = 5
            return LATER

        self.answer = listen
        self.submit(self.service(), message(0))
        self.assertEqual(self.sent_back, [(0, 5)])

    def test_with_an_ack_index_only_the_rest_goes_back(self) -> None:
        def listen(messages: Any, context: ConsumeContext) -> ConsumeStatus:
            context.ack_index = 0
            return OK

        self.answer = listen
        self.submit(self.service(consume_message_batch_max_size=3), *map(message, range(3)))
        self.assertEqual((self.sent_back, self.committed), ([(1, 0), (2, 0)], 3))

    def test_failing_listener_is_logged_and_its_message_goes_back(self) -> None:
        self.answer = ValueError("bad day")
        self.submit(self.service(), message(0))
        self.assertEqual((self.sent_back, self.committed), ([(0, 0)], 1))
        self.assertEqual(len(self.flushLoggedErrors(ValueError)), 1)

    def test_listener_that_answers_nothing_is_told_what_to_answer(self) -> None:
        self.answer = None
        with capturedLogs() as events:
            self.submit(self.service(), message(0, UNIQ_KEY="U1"))
        (event,) = [one for one in events if one["log_level"] is LogLevel.warn]
        self.assertIn("ConsumeStatus.CONSUME_SUCCESS", event["answers"])
        self.assertEqual((event["ids"], self.sent_back), ("U1", [(0, 0)]))

    def test_message_that_cannot_go_back_is_tried_here_after_five_seconds(self) -> None:
        self.answer, self.back_error = LATER, RemotingSendError("gone")
        self.submit(self.service(), message(0), message(1))
        self.assertEqual((self.committed, self.held.count), (0, 2))
        self.answer = OK
        self.clock.advance(4.9)
        self.assertEqual(len(self.calls), 2)
        self.clock.advance(0.1)
        self.assertEqual((self.committed, self.held.count), (2, 0))
        self.assertEqual([messages[0].reconsume_times for messages, _ in self.calls], [0, 0, 1, 1])

    def test_broadcast_message_that_fails_is_dropped(self) -> None:
        self.answer = LATER
        self.submit(self.service(message_model=MessageModel.BROADCASTING), message(0))
        self.assertEqual((self.sent_back, self.committed), ([], 1))

    def test_retried_message_comes_under_its_own_topic(self) -> None:
        self.submit(self.service(), message(0, "%RETRY%g", RETRY_TOPIC="T"), message(1, "%RETRY%g"))
        self.assertEqual([messages[0].topic for messages, _ in self.calls], ["T", "%RETRY%g"])

    def test_time_of_the_call_stands_in_the_properties(self) -> None:
        self.clock.advance(12.5)
        self.submit(self.service(), message(0))
        self.assertEqual(self.calls[0][0][0].properties, {"CONSUME_START_TIME": "12500"})

    def test_listener_that_takes_too_long_is_given_up(self) -> None:
        self.answer = lambda messages, context: defer.Deferred()
        self.submit(self.service(consume_timeout_seconds=60), message(0))
        self.clock.advance(60)
        self.assertEqual((self.sent_back, self.committed), ([(0, 0)], 1))
        self.flushLoggedErrors()


class DroppedQueues(ConsumeCase):
    def test_result_of_a_dropped_queue_commits_nothing(self) -> None:
        waiting: defer.Deferred[ConsumeStatus] = defer.Deferred()
        self.answer = lambda messages, context: waiting
        self.submit(self.service(), message(0))
        self.held.dropped = True
        waiting.callback(LATER)
        self.assertEqual((self.committed, self.sent_back, self.held.count), (None, [], 1))

    def test_queue_dropped_while_messages_go_back_commits_nothing(self) -> None:
        going: defer.Deferred[None] = defer.Deferred()

        async def send_back(message: MessageExt, queue: MessageQueue, delay_level: int) -> None:
            await going

        self._send_back = send_back  # type: ignore[method-assign]
        self.answer = LATER
        self.submit(self.service(), message(0))
        self.held.dropped = True
        going.callback(None)
        self.assertEqual(self.committed, None)

    def test_waiting_messages_of_a_dropped_queue_are_not_delivered(self) -> None:
        waiting: list[defer.Deferred[ConsumeStatus]] = []

        def listen(messages: Any, context: Any) -> Any:
            waiting.append(defer.Deferred())
            return waiting[-1]

        self.answer = listen
        self.submit(self.service(concurrency=1), message(0), message(1))
        self.held.dropped = True
        waiting[0].callback(OK)
        self.assertEqual(self.offsets_seen(), [[0]])


class Concurrency(ConsumeCase):
    def test_open_calls_are_bounded(self) -> None:
        waiting: list[defer.Deferred[ConsumeStatus]] = []

        def listen(messages: Any, context: Any) -> Any:
            waiting.append(defer.Deferred())
            return waiting[-1]

        self.answer = listen
        self.submit(self.service(concurrency=2), *map(message, range(4)))
        self.assertEqual(len(waiting), 2)
        waiting[0].callback(OK)
        self.assertEqual(len(waiting), 3)

    def test_reactor_has_its_turn_between_many_calls(self) -> None:
        self.submit(self.service(), *map(message, range(CALLS_A_TURN + 5)))
        self.assertEqual(len(self.calls), CALLS_A_TURN)
        self.clock.advance(0)
        self.assertEqual(len(self.calls), CALLS_A_TURN + 5)
        self.assertEqual(self.committed, CALLS_A_TURN + 5)


class Stopping(ConsumeCase):
    def test_open_call_may_finish(self) -> None:
        waiting: defer.Deferred[ConsumeStatus] = defer.Deferred()
        self.answer = lambda messages, context: waiting
        service = self.service(concurrency=1)
        self.submit(service, message(0), message(1))
        stopped = defer.Deferred.fromCoroutine(service.stop(5))
        self.assertNoResult(stopped)
        waiting.callback(OK)
        self.successResultOf(stopped)
        self.assertEqual((self.offsets_seen(), self.committed), ([[0]], 1))
        self.assertEqual(self.clock.getDelayedCalls(), [])

    def test_call_that_does_not_finish_is_cancelled_and_commits_nothing(self) -> None:
        cancelled: list[Any] = []
        self.answer = lambda messages, context: defer.Deferred(cancelled.append)
        service = self.service()
        self.submit(service, message(0))
        stopped = defer.Deferred.fromCoroutine(service.stop(5))
        self.clock.advance(5)
        self.successResultOf(stopped)
        self.assertEqual((len(cancelled), self.committed, self.sent_back), (1, None, []))
        self.assertEqual(self.clock.getDelayedCalls(), [])

    def test_timers_end_with_the_service(self) -> None:
        self.answer, self.back_error = LATER, RemotingSendError("gone")
        service = self.service()
        self.submit(service, *map(message, range(CALLS_A_TURN + 1)))
        self.successResultOf(defer.Deferred.fromCoroutine(service.stop(5)))
        self.assertEqual(self.clock.getDelayedCalls(), [])
        self.submit(service, message(999))
        self.assertNotIn([999], self.offsets_seen())
