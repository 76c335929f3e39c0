"""Writing tables behind what changes them."""

from __future__ import annotations

import errno
from collections.abc import Callable

from twisted.internet import defer
from twisted.internet.task import Clock
from twisted.python.failure import Failure
from twisted.trial.unittest import SynchronousTestCase

from twisted_mq.broker.table_saver import REST, RETRY_SECONDS, TableSaver

FULL = OSError(errno.ENOSPC, "No space left on device")


class Table:
    """A table whose value is a number."""

    def __init__(self) -> None:
        self.value = 0
        self.written: list[int] = []

    def snapshot(self) -> Callable[[], object]:
        value = self.value
        return lambda: self.written.append(value)


class TableSaverCase(SynchronousTestCase):
    def setUp(self) -> None:
        self.clock = Clock()
        self.table = Table()
        self.threads: list[tuple[Callable[[], object], defer.Deferred[object]]] = []
        self.saver = TableSaver("topics.json", self.table, self.clock, self._in_thread)

    def _in_thread(self, work: Callable[[], object]) -> defer.Deferred[object]:
        self.threads.append((work, defer.Deferred()))
        return self.threads[-1][1]

    def finish(self, error: Exception | None = None) -> None:
        """Let the oldest thread come to its end."""
        work, done = self.threads.pop(0)
        if error is not None:
            done.errback(Failure(error))
            return
        done.callback(work())

    def change(self, value: int) -> None:
        self.table.value = value
        self.saver.touch()

    def test_changes_during_a_write_are_written_together_by_the_next_one(self) -> None:
        for value in range(1, 100):
            self.change(value)
        self.assertEqual(len(self.threads), 1)
        self.finish()
        self.finish()
        self.assertEqual((self.table.written, self.threads), ([1, 99], []))
        self.assertTrue(self.saver.is_saved)

    def test_who_waits_is_told_when_the_change_is_on_disk(self) -> None:
        self.successResultOf(self.saver.when_saved())
        self.change(1)
        first = self.saver.when_saved()
        self.change(2)
        second = self.saver.when_saved()
        self.finish()
        self.successResultOf(first)
        self.assertNoResult(second)
        self.finish()
        self.successResultOf(second)

    def test_who_waits_is_told_while_the_table_changes_all_the_time(self) -> None:
        self.change(0)
        for value in range(1, 10):
            self.change(value)
            waiting = self.saver.when_saved()
            self.finish()
            self.assertNoResult(waiting)
            self.change(100 + value)
            self.finish()
            self.successResultOf(waiting)
            self.assertEqual(self.table.written[-1], value)

    def test_a_write_that_takes_long_is_followed_by_a_rest(self) -> None:
        self.change(1)
        self.change(2)
        self.clock.advance(0.5)
        self.finish()
        self.change(3)
        self.clock.advance(0.5 * REST - 0.01)
        self.assertEqual((self.threads, self.saver.is_saved), ([], False))
        self.clock.advance(0.01)
        self.finish()
        self.assertEqual((self.table.written, self.saver.is_saved), ([1, 3], True))

    def test_the_stop_waits_for_no_rest(self) -> None:
        self.change(1)
        self.change(2)
        self.clock.advance(60.0)
        self.finish()
        stopped = defer.Deferred.fromCoroutine(self.saver.stop())
        self.finish()
        self.successResultOf(stopped)
        self.assertEqual((self.table.written, self.clock.getDelayedCalls()), ([1, 2], []))

    def test_a_failed_write_is_said_once_and_tried_again(self) -> None:
        self.change(1)
        waiting = self.saver.when_saved()
        with self.assertLogs("twisted_mq.broker.table_saver", "ERROR") as logged:
            self.finish(FULL)
            self.change(2)
            self.assertEqual(self.threads, [])
            self.clock.advance(RETRY_SECONDS)
            self.finish(FULL)
        self.assertEqual(len(logged.output), 1)
        self.clock.advance(RETRY_SECONDS)
        self.finish()
        self.assertEqual(self.table.written, [2])
        self.successResultOf(waiting)

    def test_an_abandoned_table_is_not_written_again(self) -> None:
        self.change(1)
        self.change(2)
        self.saver.abandon()
        self.finish(FULL)
        self.assertEqual((self.threads, self.clock.getDelayedCalls()), ([], []))

    def test_the_stop_waits_for_a_write_and_writes_what_came_after_it(self) -> None:
        self.change(1)
        self.change(2)
        stopped = defer.Deferred.fromCoroutine(self.saver.stop())
        self.finish()
        self.finish()
        self.successResultOf(stopped)
        self.assertEqual(self.table.written, [1, 2])

    def test_the_stop_tries_once_more_after_a_failure_and_leaves_no_timer(self) -> None:
        self.change(1)
        self.finish(FULL)
        waiting = self.saver.when_saved()
        stopped = defer.Deferred.fromCoroutine(self.saver.stop())
        self.finish(FULL)
        self.successResultOf(stopped)
        self.failureResultOf(waiting, defer.CancelledError)
        self.assertEqual(self.clock.getDelayedCalls(), [])
