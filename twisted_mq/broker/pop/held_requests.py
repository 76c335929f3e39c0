"""Pops and notifications that wait for messages (Apache: PopLongPollingService).

A request waits under its topic, group and queue id, where -1 stands for all queues. An arriving message of the topic or
of the group's retry topics wakes one request for its queue and one for all queues; a woken request that finds nothing
goes on waiting. A request that comes to its end tries once more and is answered whatever that brings.
"""

from __future__ import annotations

import bisect
import enum
from collections.abc import Callable, Collection
from typing import Any

import attrs
from twisted.internet import defer, interfaces

from twisted_mq.protocol.names.pop_topics import pop_retry_topics

ALL_QUEUES = -1
EARLY_MS = 50
"""So much before its end a request is answered (Apache: PopRequest.isTimeout)."""

Key = tuple[str, str, int]
"""Topic, group, queue id."""


class NotHeld(enum.Enum):
    """Why a request does not wait (Apache: PollingResult)."""

    NO_TIME = "it may not wait, or its time is over"
    FULL = "too many wait"


@attrs.define(eq=False)
class HeldRequest:
    """`attempt(last)` gives the answer, or None where there is none yet, unless it is the last."""

    key: Key
    expires_ms: int
    tags_codes: Collection[int] | None
    attempt: Callable[[bool], Any]
    connected: Callable[[], bool]
    done: defer.Deferred[Any] = attrs.field(init=False)
    timer: interfaces.IDelayedCall | None = None

    def wants(self, arrived: Collection[int] | None) -> bool:
        """Whether a message with one of these tags codes may be for it; None for any."""
        return arrived is None or self.tags_codes is None or not set(self.tags_codes).isdisjoint(arrived)


@attrs.define
class _Arrival:
    count: int = 0
    tags_codes: set[int] = attrs.field(factory=set)


class HeldRequests:
    """Waiting requests of one kind, of a key the one that ends first is woken first; with `newest_first` the last."""

    def __init__(self, broker: Any, *, newest_first: bool = False) -> None:
        self._broker = broker
        self._next = -1 if newest_first else 0
        self._held: dict[Key, list[HeldRequest]] = {}
        self._pairs: dict[str, dict[tuple[str, str], int]] = {}
        self._woken: dict[Key, _Arrival] = {}
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def count(self, topic: str, group: str, queue_id: int) -> int:
        """How many wait under a key."""
        return len(self._held.get((topic, group, queue_id), ()))

    def hold(
        self,
        header: Any,
        born_ms: int,
        tags_codes: Collection[int] | None,
        attempt: Callable[[bool], Any],
        connected: Callable[[], bool],
    ) -> defer.Deferred[Any] | NotHeld:
        """Let a request wait for its poll time; the Deferred fires with its answer, None where its client is gone.

        Who cancels the Deferred gets nothing: what arrives stays for others.
        """
        options, now = self._broker.options, self._broker.now_ms()
        expires_ms = born_ms + header.poll_time
        key = (header.topic, header.consumer_group, header.queue_id)
        if header.poll_time <= 0:
            return NotHeld.NO_TIME
        if self._count >= options.max_pop_polling_size or self.count(*key) > options.pop_polling_size:
            return NotHeld.FULL
        if now > expires_ms - EARLY_MS:
            return NotHeld.NO_TIME
        request = HeldRequest(key, expires_ms, tags_codes, attempt, connected)
        delay = (expires_ms - EARLY_MS - now) / 1000
        request.timer = self._broker.clock.callLater(delay, self._expired, request)
        request.done = defer.Deferred(lambda _: self._cancelled(request))
        self._keep(request)
        return request.done

    # messages

    def arrived(self, topic: str, queue_id: int, tags_code: int) -> None:
        """A message became visible; `answer_woken` looks who wanted it."""
        for pair in self._pairs.get(topic, ()):
            for key in ((*pair, ALL_QUEUES), (*pair, queue_id)):
                if key in self._held:
                    arrival = self._woken.setdefault(key, _Arrival())
                    arrival.count += 1
                    arrival.tags_codes.add(tags_code)

    def answer_woken(self) -> bool:
        """Answer as many requests as messages arrived, and found; whether any was tried."""
        if not self._woken:
            return False
        woken, self._woken = self._woken, {}
        for key, arrival in woken.items():
            for _ in range(arrival.count):
                if not self._wake(key, arrival.tags_codes):
                    break
        return bool(woken)

    def wake(self, topic: str, group: str, queue_id: int) -> None:
        """A queue may be read again: a request for all queues is tried, else one for the queue."""
        if not self._wake((topic, group, ALL_QUEUES), None):
            self._wake((topic, group, queue_id), None)

    def forget_lost(self) -> None:
        """Let requests go whose connection is gone, however long they wanted to wait."""
        for request in [one for held in self._held.values() for one in held if not one.connected()]:
            self._drop(request)
            self._finish(request, last=True)

    def answer_all(self) -> None:
        """Answer every request: the broker stops."""
        for request in [request for requests in self._held.values() for request in requests]:
            self._drop(request)
            self._finish(request, last=True)

    def _wake(self, key: Key, arrived: Collection[int] | None) -> bool:
        """Answer a request that wants one of the messages; False where none does, or it found nothing."""
        wanting = [request for request in self._held.get(key, ()) if request.wants(arrived)]
        while wanting:
            request = wanting.pop(self._next)
            self._drop(request)
            gone = not request.connected()
            if not self._finish(request, last=False):
                self._keep(request)
                return False
            if not gone:
                return True
        return False

    def _cancelled(self, request: HeldRequest) -> None:
        if request in self._held.get(request.key, ()):
            self._drop(request)
            assert request.timer is not None
            request.timer.cancel()

    def _expired(self, request: HeldRequest) -> None:
        request.timer = None
        self._drop(request)
        self._finish(request, last=True)
        self._broker.dispatch()

    @staticmethod
    def _finish(request: HeldRequest, *, last: bool) -> bool:
        """Try a request; False where it has to go on waiting."""
        if not request.connected():
            answer: defer.Deferred[Any] = defer.succeed(None)
        else:
            found = defer.maybeDeferred(request.attempt, last)
            if not last and found.called and found.result is None:
                return False
            answer = found
        if request.timer is not None:
            request.timer.cancel()
        answer.chainDeferred(request.done)
        return True

    def _keep(self, request: HeldRequest) -> None:
        self._broker.store.arrival_listener = self._broker.message_arriving
        topic, group, _ = request.key
        bisect.insort(self._held.setdefault(request.key, []), request, key=lambda one: one.expires_ms)
        for name in (topic, *pop_retry_topics(topic, group)):
            pairs = self._pairs.setdefault(name, {})
            pairs[topic, group] = pairs.get((topic, group), 0) + 1
        self._count += 1

    def _drop(self, request: HeldRequest) -> None:
        topic, group, _ = request.key
        held = self._held[request.key]
        held.remove(request)
        if not held:
            del self._held[request.key]
        for name in (topic, *pop_retry_topics(topic, group)):
            pairs = self._pairs[name]
            pairs[topic, group] -= 1
            if not pairs[topic, group]:
                del pairs[topic, group]
            if not pairs:
                del self._pairs[name]
        self._count -= 1
