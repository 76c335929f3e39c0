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
SLEEP = "DueSelector.select"
"""The function in which a loop waits, after all that is due."""
WARM_UP = 16
"""After so many sends the numbers of requests have two digits, and the shape of such answers is known."""

Call = tuple[str | None, str]
"""Caller's and called file; None for a caller that is no file of the project."""


def name(frame: FrameType | None) -> str:
    return "" if frame is None else frame.f_code.co_qualname


@attrs.define
class Walk:
    """The calls of one thread: those before an answer is read, and those after."""

    out: list[Call] = attrs.Factory(list)
    back: list[Call] = attrs.Factory(list)
    _begun: list[FrameType] = attrs.Factory(list)

    def note(self, frame: FrameType, event: str, argument: Any) -> None:
        if event != "call" or frame in self._begun or SLEEP in (name(frame), name(frame.f_back)):
            return
        self._begun.append(frame)  # a coroutine that goes on is no further call
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


CORE_OUT = [
    "twisted_mq/client/producing/producer.py",
    "twisted_mq/client/producing/dispatch.py",
    "twisted_mq/client/producing/outgoing.py",
    "twisted_mq/client/producing/send_window.py",
    "protocol/layouts/message_id.py",
    "protocol/names/topic_route.py",
    "twisted_mq/remoting/calling_channel.py",
    "twisted_mq/remoting/socket_channel.py",
    "twisted_mq/remoting/awaited_answers.py",
    "protocol/wire/request_format.py",
]
"""A plain send, from the call to the socket. protocol/text/properties.py encodes properties in addition."""
CORE_BACK = [
    "twisted_mq/remoting/calling_channel.py",
    "twisted_mq/remoting/socket_channel.py",
    "protocol/wire/framing.py",
    "protocol/wire/command.py",
    "twisted_mq/remoting/awaited_answers.py",
    "twisted_mq/client/producing/dispatch.py",
    "twisted_mq/client/producing/send_result.py",
    "protocol/wire/header_codec.py",
    "twisted_mq/client/producing/send_window.py",
]
"""Its answer, from the bytes of a read to the result."""
OUTBOX = "twisted_mq/remoting/outbox.py"
"""Sends what the callers of all answers of one read have asked meanwhile."""

Way = list[str]
WAYS: dict[str, tuple[Callable[[], list[Walk]], list[Way]]] = {
    "Deferreds": (deferred_walks, [CORE_OUT, [*CORE_BACK, OUTBOX]]),
    "asyncio": (
        asyncio_walks,
        [
            ["twisted_mq/aio/producer.py", "twisted_mq/aio/loop_reactor.py", *CORE_OUT, "twisted_mq/aio/awaiting.py"],
            [*CORE_BACK, "twisted_mq/aio/awaiting.py", OUTBOX],
        ],
    ),
    "plain calls": (
        blocking_walks,
        [
            [
                "twisted_mq/blocking/producer.py",
                "twisted_mq/blocking/mq_client.py",
                "twisted_mq/blocking/loop_thread.py",
                "twisted_mq/blocking/calls.py",
                "twisted_mq/blocking/callers.py",
            ],
            [],
            [
                "twisted_mq/blocking/loop_thread.py",
                "twisted_mq/blocking/calls.py",
                "twisted_mq/blocking/producer.py",
                *CORE_OUT,
            ],
            [*CORE_BACK, "twisted_mq/blocking/callers.py", OUTBOX],
        ],
    ),
}
"""The recorder of each face, and the files of each stretch: to the socket, and back. Plain calls have two threads: the
caller's, which asks and waits, and the loop's.
"""
MOST = 10
"""Files of a stretch, except those of protocol/, which turn bytes into values and call nothing else."""


@pytest.mark.parametrize("face", WAYS)
def test_a_plain_send_passes_few_files_forward(face: str) -> None:
    walks, ways = WAYS[face]
    stretches = [calls for walk in walks() for calls in (walk.out, walk.back)]
    assert [files(calls) for calls in stretches] == ways
    assert [returns(calls) for calls in stretches] == [[]] * len(ways)
    assert all(len([file for file in way if not file.startswith("protocol/")]) <= MOST for way in ways)


def test_the_core_passes_ten_files_each_way() -> None:
    assert (len(CORE_OUT), len(CORE_BACK)) == (MOST, MOST - 1)
