"""Sends that wait for the disk are answered in the reactor's thread, all of one flush together."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs

from tests.support.broker import BrokerInMemory
from twisted_mq.broker.flush_answers import FlushAnswers
from twisted_mq.remoting.late_answers import LateAnswers
from twisted_mq.storage.errors import StoreClosed


@attrs.define(eq=False)
class Desk:
    """A store with manual flushes, and a reactor with manual calls from threads."""

    calls: list[Callable[[], None]] = attrs.field(factory=list)
    waiting: list[Callable[[bool], None]] = attrs.field(factory=list)
    events: list[Any] = attrs.field(factory=list)
    late: LateAnswers = attrs.field(factory=LateAnswers)
    is_closed: bool = False
    answers: FlushAnswers = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.answers = FlushAnswers(self, self.calls.append, self.late, lambda: self.events.append("dispatch"))

    def when_flushed(self, offset: int, callback: Callable[[bool], None]) -> None:
        if self.is_closed:
            raise StoreClosed("/store")
        self.waiting.append(callback)

    def write_answers(self, answers: list[bytes]) -> None:
        self.events.append(answers)


def test_all_of_one_flush_are_answered_in_one_call_and_one_write_before_it_is_shown() -> None:
    desk = Desk()
    for number in range(3):
        waiting = desk.answers.flushed(number)
        waiting.addCallback(lambda done, number=number: desk.late.write(desk, b"%d %d" % (number, done)))
    for number, tell in enumerate(desk.waiting):
        tell(number != 1)
    assert (len(desk.calls), desk.events) == (1, [])
    desk.calls.pop()()
    assert desk.events == [[b"0 1", b"1 0", b"2 1"], "dispatch"]


def test_who_is_told_later_is_answered_by_another_call() -> None:
    desk, heard = Desk(), list[bool]()
    for number in range(2):
        desk.answers.flushed(number).addCallback(heard.append)
    desk.waiting[0](True)
    desk.calls.pop()()
    desk.waiting[1](False)
    assert (heard, len(desk.calls)) == ([True], 1)
    desk.calls.pop()()
    assert (heard, desk.events) == ([True, False], ["dispatch", "dispatch"])


def test_what_is_flushed_while_the_store_is_closed_is_left_to_that() -> None:
    """A disk that takes longer than the stop: by then the store is closed, in a thread, or about to be."""
    broker = BrokerInMemory(flush_disk_type="SYNC_FLUSH")
    waiting: list[Callable[[bool], None]] = []
    shown: list[object] = []
    broker.store.flushed_offset = lambda: -1
    broker.store.when_flushed = lambda offset, callback: waiting.append(callback)
    broker.controller.dispatch()
    heard: list[bool] = []
    broker.controller.flushed(0).addCallback(heard.append)
    broker.store.dispatch = shown.append
    broker.controller.close_begins()
    for tell in tuple(waiting):
        tell(True)
    assert (len(waiting), heard, shown) == (2, [True], [])


def test_nothing_is_on_disk_in_time_once_the_store_is_closed() -> None:
    """The end of a transaction that comes while the broker stops (seed 11656 of the simulation)."""
    desk, heard = Desk(is_closed=True), list[bool]()
    desk.answers.flushed(7).addCallback(heard.append)
    assert (heard, desk.calls) == ([False], [])
