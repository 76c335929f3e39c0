"""Sends a bounded load: a number of messages or a time, whichever ends first."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import attrs
from twisted.internet.defer import Deferred, gatherResults
from twisted.internet.interfaces import IReactorTime
from twisted.internet.task import deferLater

from twisted_mq.cli.bench.times import Times
from twisted_mq.client import ConsumeContext, ConsumeStatus, Message, Producer
from twisted_mq.client.core.errors import ClientError
from twisted_mq.protocol.errors import ProtocolError
from twisted_mq.protocol.messages.message import MessageExt
from twisted_mq.remoting.errors import RemotingError

FAILURES = (ClientError, ProtocolError, RemotingError)
RUN = "BENCH_RUN"
"""The property that identifies the messages of one run."""


@attrs.frozen
class Plan:
    """The messages to send: at most `rate` a second, 0 for as many as answers allow."""

    topic: str
    count: int
    seconds: float
    size_bytes: int = 128
    in_flight: int = 32
    batch: int = 1
    rate: float = 0.0

    @property
    def requests(self) -> int:
        """Return the sends of `batch` messages each."""
        return -(-self.count // self.batch)


class Load:
    """Sends by a plan, with a number of requests in flight. Times are in `sent`."""

    def __init__(self, clock: IReactorTime, producer: Producer, plan: Plan, run: str) -> None:
        self.sent = Times()
        self._clock = clock
        self._producer = producer
        self._plan = plan
        self._begun = 0
        self.began = 0.0
        self._body = bytes(32 + number % 95 for number in range(plan.size_bytes))
        self._run = run

    async def send(self) -> float:
        """Send everything; return how many seconds it took."""
        self.began = self._clock.seconds()
        lanes = [Deferred.fromCoroutine(self._lane()) for _ in range(min(self._plan.in_flight, self._plan.requests))]
        try:
            await gatherResults(lanes, consumeErrors=True)
        finally:
            for lane in lanes:
                lane.cancel()
        return self._clock.seconds() - self.began

    async def _lane(self) -> None:
        plan = self._plan
        while self._begun < plan.requests and self._clock.seconds() - self.began < plan.seconds:
            number = self._begun
            self._begun += 1
            due = await self._turn(number)
            count = min(plan.batch, plan.count - number * plan.batch)
            try:
                await self._request(count)
            except FAILURES as error:
                self.sent.failed(error)
            else:
                self.sent.note(self._clock.seconds() - due, count, count * plan.size_bytes)

    async def _turn(self, number: int) -> float:
        """Return when a request is due: with a rate its time counts from then, also if other requests delayed it."""
        now = self._clock.seconds()
        if not self._plan.rate:
            return now
        due = self.began + number * self._plan.batch / self._plan.rate
        if due > now:
            await deferLater(self._clock, due - now)
        return due

    def _request(self, count: int) -> Awaitable[object]:
        messages = [Message(self._plan.topic, self._body, properties={RUN: self._run}) for _ in range(count)]
        return self._producer.send(messages[0]) if count == 1 else self._producer.send_batch(messages)


class Arrivals:
    """A listener that records how long messages of a run were in flight, from their birth on, to the ms."""

    def __init__(self, clock: IReactorTime, run: str) -> None:
        self.consumed = Times()
        self.last = clock.seconds()
        self._clock = clock
        self._run = run

    def __call__(self, messages: list[MessageExt], context: ConsumeContext) -> ConsumeStatus:
        now = self._clock.seconds()
        for message in messages:
            if message.properties.get(RUN) == self._run:
                self.last = now
                self.consumed.note(max(0.0, now - message.born_timestamp / 1000), 1, len(message.body))
        return ConsumeStatus.CONSUME_SUCCESS

    async def wait(self, count: int, idle_seconds: float, sleep: Callable[[float], Awaitable[None]]) -> None:
        """Wait until that many came, or none came for that long."""
        begun = self._clock.seconds()
        while self.consumed.messages < count and self._clock.seconds() - max(begun, self.last) < idle_seconds:
            await sleep(0.05)
