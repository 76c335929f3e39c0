"""Files that a plain send passes in each face of the client: on its way out, and its answer on the way back."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

import attrs
import pytest

from tests.bench import client_paths
from tests.bench.canned_broker import BODY, TOPIC, CannedBroker
from tests.twisted_mq.broker.test_way_of_a_send import place
from twisted_mq import aio, blocking, client
from twisted_mq.client import Message, SendStatus

ANSWER = "dataReceived"
"""The function with which the answer's way begins."""
LEFT_OUT = {"twisted_mq/clocks.py", "protocol/wire/answers.py"}
"""The clock, which is asked at any place, and the canned broker's encoder."""
WARM_UP = 8

Call = tuple[str | None, str]
"""Caller's and called file; None for a caller that is no file of the project."""


@attrs.define
class Walk:
    """The calls of one thread: those before an answer is read, and those after."""

    out: list[Call] = attrs.Factory(list)
    back: list[Call] = attrs.Factory(list)

    def note(self, frame: FrameType, event: str, argument: Any) -> None:
        if event != "call":
            return
        caller, called = place(frame.f_back), place(frame)
        if called is None or caller == called or called in LEFT_OUT:
            return
        is_back = self.back or frame.f_code.co_name == ANSWER
        (self.back if is_back else self.out).append((caller, called))


def files(calls: list[Call]) -> list[str]:
    """The files of these calls, in the order in which they are entered first."""
    return list(dict.fromkeys(called for _, called in calls))


def returns(calls: list[Call]) -> list[Call]:
    """The calls into a file that was entered before the calling file."""
    order = files(calls)
    return [(a, b) for a, b in calls if a is not None and (a not in order or order.index(a) > order.index(b))]


def walk_of(send: Callable[[], object]) -> Walk:
    """The walk of the last of some sends, in this thread."""
    for _ in range(WARM_UP):
        send()
    walk = Walk()
    sys.setprofile(walk.note)
    try:
        send()
    finally:
        sys.setprofile(None)
    return walk


def deferred_walks() -> list[Walk]:
    reactor, broker = client_paths.own_reactor(), CannedBroker()
    broker.serve(reactor.watch)
    producer = client.Producer(reactor, "g", broker.address)
    reactor.until(producer.start())
    message = Message(TOPIC, BODY)
    walk = walk_of(lambda: reactor.until(producer.send(message)))
    reactor.until(producer.stop())
    broker.close()
    return [walk]


def asyncio_walks() -> list[Walk]:
    loop, broker = asyncio.SelectorEventLoop(), CannedBroker()
    broker.serve(loop.add_reader)
    producer = aio.Producer(broker.address, group="g")
    loop.run_until_complete(producer.start())
    message = Message(TOPIC, BODY)
    walk = walk_of(lambda: loop.run_until_complete(producer.send(message)))
    loop.run_until_complete(producer.stop())
    loop.close()
    broker.close()
    return [walk]


def blocking_walks() -> list[Walk]:
    """The walks of the caller's thread and of the loop's."""
    recorded: list[Walk] = []

    def note(frame: FrameType, event: str, argument: Any) -> None:
        if recorded:
            recorded[0].note(frame, event, argument)

    broker = CannedBroker()
    producer = blocking.Producer(broker.address, group="g")
    threading.setprofile(note)
    try:
        producer.start()
    finally:
        threading.setprofile(None)
    loop = producer._reactor.loop
    loop.call_soon_threadsafe(broker.serve, loop.add_reader)
    message = Message(TOPIC, BODY)
    for _ in range(WARM_UP):
        assert producer.send(message).status is SendStatus.SEND_OK
    recorded.append(in_loop := Walk())
    in_caller = Walk()
    sys.setprofile(in_caller.note)
    try:
        producer.send(message)
    finally:
        sys.setprofile(None)
        recorded.clear()
    producer.stop()
    broker.close()
    return [in_caller, in_loop]


FACES = {"Deferreds": deferred_walks, "asyncio": asyncio_walks, "plain calls": blocking_walks}

NUMBERS = {"Deferreds": (23, 3), "asyncio": (26, 4), "plain calls": (28, 5)}
"""Files, and calls that lead back to an earlier file."""


@pytest.mark.parametrize("face", FACES)
def test_a_plain_send_passes_so_many_files(face: str) -> None:
    ways = [calls for walk in FACES[face]() for calls in (walk.out, walk.back)]
    passed = {file for calls in ways for file in files(calls)}
    assert (len(passed), sum(len(returns(calls)) for calls in ways)) == NUMBERS[face]
