"""Injects faults into a broker under test: each fault begins with one call and ends with its `with` block."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import cast

import attrs
from twisted.internet import defer, interfaces, task

from twisted_mq.broker.service import BrokerService
from twisted_mq.protocol.codes import RequestCode, ResponseCode
from twisted_mq.protocol.errors import BrokerError
from twisted_mq.protocol.remarks import REJECTED
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.remoting.channel import Answer, Channel, Later, Processor, Ready
from twisted_mq.storage.interfaces import Shut
from twisted_mq.storage.memory.memory_store import MemoryMessageStore
from twisted_mq.storage.message_store import FileMessageStore

SENDS = (RequestCode.SEND_MESSAGE, RequestCode.SEND_MESSAGE_V2, RequestCode.SEND_BATCH_MESSAGE)


@attrs.define(eq=False)
class Fault:
    """A fault that lasts. It affects `times` sends, or all if that is None; `count` is how many it affected."""

    times: int | None = None
    count: int = 0

    def strikes(self) -> bool:
        """Return whether the fault affects the next send, and count it."""
        if self.times is not None and self.count >= self.times:
            return False
        self.count += 1
        return True


Struck = Callable[[Processor, Channel, RemotingCommand], Answer]
"""The effect on a request, instead of its processor's answer."""


class Faults:
    """The faults of one broker. `call` runs a function in the thread of the broker's reactor, and waits for its end."""

    def __init__(
        self,
        broker: Callable[[], BrokerService],
        clock: interfaces.IReactorTime,
        call: Callable[[Callable[[], None]], None],
    ) -> None:
        self._broker = broker
        self._clock = clock
        self._call = call

    def busy(self, times: int | None = None) -> contextlib.AbstractContextManager[Fault]:
        """Answer sends with SYSTEM_BUSY, without storing them."""
        return self._on_sends(Fault(times), _refuse)

    def slow(self, seconds: float, times: int | None = None) -> contextlib.AbstractContextManager[Fault]:
        """Store sends at once, and answer them after this many seconds."""

        def late(processor: Processor, channel: Channel, request: RemotingCommand) -> Answer:
            return _later(processor(channel, request), lambda: task.deferLater(self._clock, seconds))

        return self._on_sends(Fault(times), late)

    def losing_connections(self, times: int | None = None) -> contextlib.AbstractContextManager[Fault]:
        """Store sends, but cut their connection instead of answering: the producer cannot know that they were stored."""
        return self._on_sends(Fault(times), _cut)

    @contextlib.contextmanager
    def full_disk(self) -> Iterator[None]:
        """Store nothing: answer sends with SERVICE_NOT_AVAILABLE. Stored messages can still be consumed."""
        self._call(lambda: self._store.gate.shut(Shut.DISK_FULL))
        try:
            yield
        finally:
            self._call(lambda: self._store.gate.open(Shut.DISK_FULL))

    @property
    def _store(self) -> FileMessageStore | MemoryMessageStore:
        return cast("FileMessageStore | MemoryMessageStore", self._broker().controller.store)

    @contextlib.contextmanager
    def _on_sends(self, fault: Fault, struck: Struck) -> Iterator[Fault]:
        processors = self._broker().processors
        sound: dict[int, Processor] = {code: processors[code] for code in SENDS}

        def begin() -> None:
            for code, processor in sound.items():
                processors[code] = _faulty(processor, fault, struck)

        self._call(begin)
        try:
            yield fault
        finally:
            self._call(lambda: processors.update(sound))


def _faulty(processor: Processor, fault: Fault, struck: Struck) -> Processor:
    def answer(channel: Channel, request: RemotingCommand) -> Answer:
        return struck(processor, channel, request) if fault.strikes() else processor(channel, request)

    return answer


def _refuse(processor: Processor, channel: Channel, request: RemotingCommand) -> Answer:
    raise BrokerError(ResponseCode.SYSTEM_BUSY, REJECTED)


def _cut(processor: Processor, channel: Channel, request: RemotingCommand) -> Answer:
    answer = processor(channel, request)
    if isinstance(answer, defer.Deferred):
        answer.addErrback(lambda _: None)  # no waiting caller is left
    channel.abort()
    return None


async def _after(answer: Answer, wait: Callable[[], defer.Deferred[None]]) -> Ready:
    ready = await answer if isinstance(answer, defer.Deferred) else answer
    await wait()
    return ready


def _later(answer: Answer, wait: Callable[[], defer.Deferred[None]]) -> Later:
    return defer.Deferred.fromCoroutine(_after(answer, wait))
