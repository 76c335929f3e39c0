"""Requests that wait for messages: pulls, pops and notifications (Apache: PullRequestHoldService, PopLongPollingService).

Who waits for the same stands in one line. An arriving message wakes the lines that it concerns; after the dispatch of a
batch those are answered together, so that one answer carries the whole batch. Every pull of a line is answered, as each
reads for itself. Of pops and notifications as many are as messages arrived; one that finds nothing goes on waiting.
"""

from __future__ import annotations

import bisect
from collections.abc import Callable, Collection

import attrs
from twisted.internet import defer, interfaces
from twisted.python import failure

from twisted_mq.broker.waiting_requests import Kind, Line, Place, Waiting
from twisted_mq.remoting.channel import Answer, Ready
from twisted_mq.remoting.late_answers import LateAnswers

ALL_QUEUES = -1
EARLY_MS = 50
"""So much before its end a pop or a notification is answered (Apache: PopRequest.isTimeout)."""
HOLD_CHECK_SECONDS = 5.0
"""How often pulls are looked at for their time limit, and all for their connection (Apache: 5 s)."""


@attrs.define(eq=False)
class _Held:
    request: Waiting
    done: defer.Deferred[Ready]
    timer: interfaces.IDelayedCall | None

    def wants(self, arrived: Collection[int] | None) -> bool:
        """Whether a message with one of these tags codes may be for it; None for any."""
        codes = self.request.tags_codes
        return arrived is None or codes is None or not set(codes).isdisjoint(arrived)


@attrs.define
class _Arrival:
    count: int = 0
    tags_codes: set[int] = attrs.field(factory=set)


class LongPolling:
    """All that wait at one broker, of a line the one that ends first is woken first, of notifications the last.

    `lines` is empty while nobody waits, `woken` while no message has arrived for them. `dispatch` shows what a pop put
    when its time was up.
    """

    def __init__(
        self,
        clock: interfaces.IReactorTime,
        now_ms: Callable[[], int],
        late: LateAnswers,
        dispatch: Callable[[], object],
    ) -> None:
        self.lines: dict[Line, list[_Held]] = {}
        self.woken: dict[Line, _Arrival] = {}
        self._clock = clock
        self._now_ms = now_ms
        self._dispatch = dispatch
        self._lines_at: dict[Place, dict[Line, None]] = {}
        self._counts = dict.fromkeys(Kind, 0)
        self._late = late

    def count(self, kind: Kind) -> int:
        """How many of a kind wait."""
        return self._counts[kind]

    def length(self, line: Line) -> int:
        """How many wait in a line."""
        return len(self.lines.get(line, ()))

    def hold(self, request: Waiting) -> defer.Deferred[Ready]:
        """Let a request wait. Fires with its answer, None where its client is gone; who cancels it gets none."""
        timer = None
        if request.line.kind is not Kind.PULL:
            delay_ms = request.expires_ms - EARLY_MS - self._now_ms()
            timer = self._clock.callLater(delay_ms / 1000, lambda: self._expired(held))
        held = _Held(request, defer.Deferred(lambda _: self._cancelled(held)), timer)
        self._keep(held)
        return held.done

    # messages

    def arrived(self, topic: str, queue_id: int, queue_offset: int, tags_code: int, store_timestamp: int) -> None:
        """The store's arrival listener; `answer_woken` looks who wanted it."""
        for place in ((topic, ALL_QUEUES), (topic, queue_id)):
            for line in self._lines_at.get(place, ()):
                arrival = self.woken.setdefault(line, _Arrival())
                arrival.count += 1
                arrival.tags_codes.add(tags_code)

    def answer_woken(self) -> bool:
        """Answer those for whom messages arrived; whether pops were tried, which put check points."""
        woken, self.woken = sorted(self.woken.items()), {}
        with self._late.together():
            for line, arrival in woken:
                self._offer(line, arrival)
        return bool(woken) and woken[-1][0].kind is Kind.POP

    def _offer(self, line: Line, arrival: _Arrival) -> None:
        if line.kind is Kind.PULL:
            for held in [held for held in self.lines.get(line, ()) if held.wants(arrival.tags_codes)]:
                self._try(held, last=False)
            return
        for _ in range(arrival.count):
            if not self._wake(line, arrival.tags_codes):
                break

    def wake(self, topic: str, group: str, queue_id: int) -> None:
        """A queue may be popped again: of both kinds a request for all queues is tried, else one for the queue."""
        for kind in (Kind.POP, Kind.NOTIFICATION):
            if not self._wake(Line(kind, topic, group, ALL_QUEUES), None):
                self._wake(Line(kind, topic, group, queue_id), None)

    def _wake(self, line: Line, arrived: Collection[int] | None) -> bool:
        """Answer a request that wants one of the messages; False where none does, or it found nothing."""
        wanting = [held for held in self.lines.get(line, ()) if held.wants(arrived)]
        while wanting:
            held = wanting.pop(-1 if line.kind is Kind.NOTIFICATION else 0)
            gone = not held.request.channel.connected_now
            if not self._try(held, last=False):
                return False
            if not gone:
                return True
        return False

    # ends

    def answer_expired(self, now_ms: int) -> None:
        """Answer those whose time is up; let those go whose connection is gone, however long they wanted to wait."""
        self._end(lambda held: held.request.expires_ms <= now_ms or not held.request.channel.connected_now)

    def answer_queue(self, topic: str, queue_id: int) -> None:
        """Answer the pulls of one queue: a reader among them is to go on elsewhere."""
        with self._late.together():
            for held in list(self.lines.get(Line(Kind.PULL, topic, "", queue_id), ())):
                self._try(held, last=True)

    def answer_all(self, *kinds: Kind) -> None:
        """Answer every request of these kinds: the broker stops."""
        self._end(lambda held: held.request.line.kind in kinds)

    def _end(self, due: Callable[[_Held], bool]) -> None:
        with self._late.together():
            for held in [held for line in self.lines.values() for held in line if due(held)]:
                self._try(held, last=True)

    def _expired(self, held: _Held) -> None:
        held.timer = None
        self._try(held, last=True)
        self._dispatch()

    def _cancelled(self, held: _Held) -> None:
        self._drop(held)
        if held.timer is not None:
            held.timer.cancel()

    def _try(self, held: _Held, *, last: bool) -> bool:
        """Answer a request, if there is an answer; False where it goes on waiting."""
        if held.done.called:
            return True
        self._drop(held)
        answer: Answer | failure.Failure = None
        if held.request.channel.connected_now:
            try:
                answer = held.request.attempt(last)
            except Exception:
                answer = failure.Failure()
            if answer is None and not last:
                self._keep(held)
                return False
        self._answer(held, answer)
        return True

    def _answer(self, held: _Held, answer: Answer | failure.Failure) -> None:
        if held.timer is not None:
            held.timer.cancel()
        if isinstance(answer, defer.Deferred):
            answer.addBoth(held.done.callback)
        elif isinstance(answer, failure.Failure):
            held.done.errback(answer)
        else:
            held.done.callback(answer)

    # lines

    def _keep(self, held: _Held) -> None:
        line = held.request.line
        if line not in self.lines:
            self.lines[line] = []
            for place in line.places():
                self._lines_at.setdefault(place, {})[line] = None
        bisect.insort(self.lines[line], held, key=lambda one: one.request.expires_ms)
        self._counts[line.kind] += 1

    def _drop(self, held: _Held) -> None:
        line = held.request.line
        self.lines[line].remove(held)
        self._counts[line.kind] -= 1
        if self.lines[line]:
            return
        del self.lines[line]
        for place in line.places():
            lines = self._lines_at[place]
            del lines[line]
            if not lines:
                del self._lines_at[place]
