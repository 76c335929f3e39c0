"""Listeners of every form: plain, async, with Deferreds, in threads; and what is said of those that answer nonsense."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from twisted.internet import defer, reactor, task
from twisted.logger import LogEvent, capturedLogs
from twisted.trial.unittest import SynchronousTestCase, TestCase

from tests.twisted_mq.client.consuming.test_consume_service import ConsumeCase, message
from twisted_mq.client import ConsumeStatus
from twisted_mq.client.consuming.call_pump import CallPump
from twisted_mq.client.consuming.consume_service import ConsumeService
from twisted_mq.client.consuming.consumer_options import ConsumeContext, ConsumerOptions
from twisted_mq.client.consuming.listener_calls import ListenerCalls
from twisted_mq.client.consuming.listener_threads import ListenerThreads
from twisted_mq.client.consuming.offset_store import OffsetStore
from twisted_mq.client.consuming.process_queue import ProcessQueue
from twisted_mq.protocol.bodies import MessageQueue

OK, LATER = ConsumeStatus.CONSUME_SUCCESS, ConsumeStatus.RECONSUME_LATER
QUEUE = MessageQueue("T", "broker-a", 0)
THREADS = 4


class Forms(ConsumeCase):
    def consumed(self, answer: Any) -> int | None:
        self.held = ProcessQueue()
        self.offsets = OffsetStore()
        self.answer = answer
        self.submit(self.service(), message(0))
        return self.committed

    async def _soon(self) -> ConsumeStatus:
        return OK

    def test_status_coroutine_deferred_and_any_awaitable_are_answers(self) -> None:
        class Awaitable:
            def __await__(self) -> Any:
                yield from defer.succeed(None).__await__()
                return OK

        for answer in (OK, lambda *_: self._soon(), defer.succeed(OK), Awaitable()):
            self.assertEqual(self.consumed(answer), 1, answer)

    def test_nonsense_is_logged_with_the_listeners_name_and_what_to_return(self) -> None:
        for nonsense in (None, True, "CONSUME_SUCCESS", 3):
            with capturedLogs() as logs:
                self.consumed(nonsense)
            (said,) = [one for one in logs if "status" in one]
            self.assertEqual(said["name"], f"{__name__.rpartition('.')[0]}.test_consume_service.ConsumeCase._listen")
            self.assertEqual((said["status"], said["answers"]),
                             (nonsense, "ConsumeStatus.CONSUME_SUCCESS or ConsumeStatus.RECONSUME_LATER"))  # fmt: skip

    def test_error_is_logged_with_the_listeners_name(self) -> None:
        with capturedLogs() as logs:
            self.consumed(ValueError("broken"))
        said: list[LogEvent] = [one for one in logs if "log_failure" in one]
        self.assertEqual([str(one["log_failure"].value) for one in said], ["broken"])
        self.assertTrue(said[0]["name"].endswith("ConsumeCase._listen"))
        self.flushLoggedErrors(ValueError)


class WithoutThreads(SynchronousTestCase):
    def test_a_clock_runs_a_blocking_listener_at_once(self) -> None:
        threads = ListenerThreads(task.Clock(), 2, "g")
        self.assertEqual(self.successResultOf(threads.call(lambda one: one + 1, 1)), 2)
        self.failureResultOf(threads.call(int, "x"), ValueError)
        threads.stop()


class InThreads(TestCase):
    """A real reactor: its thread must stay free."""

    timeout = 30

    def service(self, listener: Callable[[Any, ConsumeContext], Any]) -> CallPump:
        self.held, self.offsets = ProcessQueue(), OffsetStore()
        threads = ListenerThreads(reactor, THREADS, f"listener of {self.id()}")
        calls = ListenerCalls(reactor, listener, "g", 20.0, LATER, threads=threads)
        return ConsumeService(calls, ConsumerOptions(concurrency=THREADS), self.offsets, self._never)

    async def _never(self, *_: Any) -> None:
        raise AssertionError("nothing is sent back")

    async def until_consumed(self, service: CallPump, count: int) -> None:
        messages = [message(one) for one in range(count)]
        self.held.put(messages)
        service.submit(messages, self.held, QUEUE)
        while self.offsets.remembered(QUEUE) != count:
            await task.deferLater(reactor, 0.01)

    def threads(self) -> list[threading.Thread]:
        return [one for one in threading.enumerate() if self.id() in one.name]

    @defer.inlineCallbacks
    def test_calls_that_block_run_side_by_side_while_the_reactor_goes_on(self) -> Any:
        """The listener waits for as many others as there are threads, and for the reactor."""
        together, turned = threading.Barrier(THREADS), threading.Event()
        seen: list[threading.Thread] = []

        def listen(messages: Any, context: ConsumeContext) -> ConsumeStatus:
            seen.append(threading.current_thread())
            together.wait(20)
            turned.wait(20)
            return OK

        reactor.callLater(0.05, turned.set)
        service = self.service(listen)
        yield defer.Deferred.fromCoroutine(self.until_consumed(service, THREADS * 2))
        self.assertEqual(len(set(seen)), THREADS)
        self.assertNotIn(threading.current_thread(), seen)
        yield defer.Deferred.fromCoroutine(service.stop(5))
        while self.threads():
            yield task.deferLater(reactor, 0.01)

    @defer.inlineCallbacks
    def test_quick_calls_have_no_more_threads_than_they_need(self) -> Any:
        """Each call begins when the one before it has ended."""
        threads = ListenerThreads(reactor, THREADS, f"listener of {self.id()}")
        answers = []
        for number in range(20):
            answers.append((yield threads.call(lambda number=number: (number, threading.current_thread()))))
        self.assertEqual([number for number, _ in answers], list(range(20)))
        self.assertEqual(len({thread for _, thread in answers}), 1)
        threads.stop()
        while self.threads():
            yield task.deferLater(reactor, 0.01)
        self.assertEqual((yield threads.call(int, "7")), 7)  # as a consumer that is started again
        threads.stop()

    @defer.inlineCallbacks
    def test_a_call_that_was_cancelled_before_its_turn_is_not_made(self) -> Any:
        begun, end = threading.Event(), threading.Event()
        threads = ListenerThreads(reactor, 1, f"listener of {self.id()}")
        first = threads.call(lambda: (begun.set(), end.wait(20)))
        made: list[int] = []
        cancelled, last = threads.call(made.append, 1), threads.call(made.append, 2)
        begun.wait(20)
        cancelled.cancel()
        self.failureResultOf(cancelled, defer.CancelledError)
        end.set()
        yield first
        yield last
        threads.stop()
        self.assertEqual(made, [2])

    @defer.inlineCallbacks
    def test_coroutine_of_a_listener_in_a_thread_runs_on_the_reactor(self) -> Any:
        async def later() -> ConsumeStatus:
            await task.deferLater(reactor, 0)
            return OK

        service = self.service(lambda messages, context: later())
        yield defer.Deferred.fromCoroutine(self.until_consumed(service, 3))
        yield defer.Deferred.fromCoroutine(service.stop(5))

    @defer.inlineCallbacks
    def test_stopping_does_not_wait_for_a_listener_that_hangs(self) -> Any:
        end = threading.Event()
        self.addCleanup(end.set)

        def hang(messages: Any, context: ConsumeContext) -> ConsumeStatus:
            end.wait(25)
            return OK

        service = self.service(hang)
        self.held.put([message(0)])
        service.submit([message(0)], self.held, QUEUE)
        yield defer.Deferred.fromCoroutine(service.stop(0.05))
        self.assertTrue(all(one.daemon for one in self.threads()))
        self.assertIsNone(self.offsets.remembered(QUEUE))
