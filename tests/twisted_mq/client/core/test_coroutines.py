"""Coroutines that mostly end without waiting: results, failures, cancelling and contextvars as with a Deferred."""

from __future__ import annotations

import contextvars
import inspect

from twisted.internet import defer
from twisted.trial.unittest import SynchronousTestCase

from twisted_mq.client.core import coroutines

name = contextvars.ContextVar("name", default="nobody")


class Start(SynchronousTestCase):
    def setUp(self) -> None:
        self.waits: list[defer.Deferred[str]] = []

    async def wait(self) -> str:
        self.waits.append(defer.Deferred())
        return await self.waits[-1]

    async def work(self) -> list[str]:
        return [await self.wait(), await self.wait()]

    def test_what_does_not_wait_needs_no_deferred(self) -> None:
        async def work() -> None:
            self.waits.append(defer.succeed("done"))

        self.assertIs(coroutines.start(work()), None)
        self.assertEqual(len(self.waits), 1)

    def test_what_raises_before_it_waits_raises(self) -> None:
        async def work() -> None:
            raise KeyError("early")

        self.assertRaises(KeyError, coroutines.start, work())

    def test_what_waits_comes_to_its_result(self) -> None:
        running = coroutines.start(self.work())
        assert running is not None
        self.waits[0].callback("one")
        self.waits[1].callback("two")
        self.assertEqual(self.successResultOf(running), ["one", "two"])

    def test_it_goes_on_in_the_contextvars_in_which_it_began(self) -> None:
        async def work() -> str:
            token = name.set("somebody")
            try:
                await self.wait()
                return name.get()
            finally:
                name.reset(token)

        before = name.get()
        running, cancelled = coroutines.start(work()), coroutines.start(work())
        assert running is not None and cancelled is not None
        self.waits[0].callback("")
        cancelled.cancel()
        self.assertEqual((self.successResultOf(running), name.get()), ("somebody", before))
        self.failureResultOf(cancelled, defer.CancelledError)

    def test_what_has_its_answer_already_does_not_wait(self) -> None:
        ended: list[str] = []

        async def work() -> None:
            ended.append(await defer.succeed("ready"))

        self.assertIs(coroutines.start(work()), None)
        self.assertEqual(ended, ["ready"])

    def test_failures_reach_the_place_that_waits(self) -> None:
        async def work() -> str:
            try:
                return await self.wait()
            except KeyError:
                return await self.wait()

        running = coroutines.start(work())
        assert running is not None
        self.waits[0].errback(KeyError("first"))
        self.waits[1].errback(ValueError("second"))
        self.failureResultOf(running, ValueError)

    def test_cancelling_reaches_what_is_waited_for(self) -> None:
        for turns in (0, 1):
            del self.waits[:]
            running = coroutines.start(self.work())
            assert running is not None
            if turns:
                self.waits[0].callback("one")
            running.cancel()
            self.failureResultOf(running, defer.CancelledError)
            self.assertTrue(self.waits[-1].called)

    def test_contextvars_are_its_own_from_beginning_to_end(self) -> None:
        seen: list[str] = []

        async def work() -> None:
            seen.append(name.get())
            name.set("work")
            await self.wait()
            seen.append(name.get())

        name.set("caller")
        running = coroutines.start(work())
        self.assertEqual(name.get(), "caller")
        name.set("other")
        self.waits[0].callback("")
        self.assertEqual((seen, name.get()), (["caller", "work"], "other"))
        assert running is not None
        self.successResultOf(running)


def test_what_nobody_waits_for_any_more_is_closed_in_either_order() -> None:
    async def wait() -> None:
        await defer.Deferred()

    for work_first in (True, False):
        work = wait()
        rest = coroutines._rest(work, work.send(None), contextvars.copy_context())
        next(rest)
        for one in (work, rest) if work_first else (rest, work):
            one.close()
        assert inspect.getcoroutinestate(work) == inspect.CORO_CLOSED
