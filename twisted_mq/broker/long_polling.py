"""Holds requests that wait for messages: pulls, pops and notifications (Apache: PullRequestHoldService, PopLongPollingService).

Requests that wait for the same messages form one line. An arriving message wakes the lines that it concerns. They are
answered together after the dispatch of a batch, so that one answer carries the whole batch. Every pull of a line is
answered, because each reads for itself. Only as many pops and notifications are answered as messages arrived; one that
finds nothing goes on waiting. If that takes long, other requests have their turn in between.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator

import attrs
from twisted.internet import defer, interfaces
from twisted.python import failure

from twisted_mq.broker.waiting_requests import Place, WaitingKind, WaitingLine, WaitingRequest
from twisted_mq.protocol.names.pop_topics import pop_retry_topics
from twisted_mq.remoting.channel import Answer, Ready
from twisted_mq.remoting.late_answers import LateAnswers
from twisted_mq.remoting.shares import Served, Shares

ALL_QUEUES = -1
EARLY_MS = 50
"""A pop or a notification is answered this long before its end (Apache: PopRequest.isTimeout)."""
TURN_SECONDS = 0.01
"""The time for answers in one turn of the reactor."""
END_MS = 1000
"""Pulls that end within the same so many milliseconds are found together."""
MOST_WAIT_MS = 300_000
"""The longest time that a request waits, whatever it asks for. Clients ask for 15 to 30 s."""
RESERVE = 1000
"""Waiting requests of an address that was served before which do not give way to others."""
HOLD_CHECK_SECONDS = 5.0
"""The interval at which pulls are checked for their time limit, and all requests for their connection (Apache: 5 s)."""


@attrs.define(eq=False)
class _Held:
    request: WaitingRequest
    expires_ms: int
    done: defer.Deferred[Ready]
    timer: interfaces.IDelayedCall | None
    share: str

    def wants(self, arrived: Collection[int] | None) -> bool:
        """Return True if the request can want a message with one of these tags codes; None for any."""
        codes = self.request.tags_codes
        return arrived is None or codes is None or not set(codes).isdisjoint(arrived)


def _expiry(held: _Held) -> int:
    return held.expires_ms


@attrs.define
class _Arrival:
    count: int = 0
    tags_codes: set[int] = attrs.field(factory=set)


class LongPolling:
    """All requests that wait at one broker. The one that ends first is woken first in its line, of notifications the last.

    `lines` is empty while no request waits, `woken` while no message has arrived for them. `dispatch` makes visible what
    a pop stored when its time was up.
    """

    def __init__(
        self,
        clock: interfaces.IReactorTime,
        now_ms: Callable[[], int],
        late: LateAnswers,
        dispatch: Callable[[], object],
    ) -> None:
        self.lines: dict[WaitingLine, dict[_Held, None]] = {}
        self.gave_way = 0
        """The requests that ended early, to make room for others."""
        self.woken: dict[WaitingLine, _Arrival] = {}
        self._clock = clock
        self._now_ms = now_ms
        self._dispatch = dispatch
        self._lines_at: dict[Place, dict[WaitingLine, None]] = {}
        self._ends: dict[int, dict[_Held, None]] = {}
        """The pulls, by their ends in steps of END_MS. Pops and notifications have timers of their own."""
        self._counts = dict.fromkeys(WaitingKind, 0)
        self._late = late
        self._served = Served(clock)
        self._shares: dict[WaitingKind, Shares[_Held]] = {
            kind: Shares(self._served.is_proven, RESERVE, earned=True) for kind in WaitingKind
        }
        self._work: deque[Iterator[WaitingKind | None]] = deque()
        self._next_turn: interfaces.IDelayedCall | None = None

    def count(self, kind: WaitingKind) -> int:
        """Return how many requests of a kind wait."""
        return self._counts[kind]

    def length(self, line: WaitingLine) -> int:
        """Return how many requests wait in a line."""
        return len(self.lines.get(line, ()))

    def has_room(self, request: WaitingRequest, limit: int) -> bool:
        """Return True if a request may wait when `limit` of its kind may. If needed, one of the largest share ends early."""
        kind = request.line.kind
        if self._counts[kind] < limit:
            return True
        held = self._shares[kind].gives_way(request.channel.share_address, request.channel)
        if held is None:
            return False
        self.gave_way += 1
        self._try(held, last=True)
        return True

    def hold(self, request: WaitingRequest) -> defer.Deferred[Ready]:
        """Let a request wait. Fires with its answer, or None if its client is gone. Never fires after it is cancelled."""
        timer, now_ms = None, self._now_ms()
        expires_ms = min(request.expires_ms, now_ms + MOST_WAIT_MS)
        if request.line.kind is not WaitingKind.PULL:
            delay_ms = expires_ms - EARLY_MS - now_ms
            timer = self._clock.callLater(delay_ms / 1000, lambda: self._expired(held))
        self._served.note(request.channel.share_address)
        share = request.channel.share_address
        held = _Held(request, expires_ms, defer.Deferred(lambda _: self._cancelled(held)), timer, share)
        self._keep(held)
        return held.done

    # messages

    def arrived(self, topic: str, queue_id: int, queue_offset: int, tags_code: int, store_timestamp: int) -> None:
        """Note an arriving message, as the store's listener; `answer_woken` finds the requests that want it."""
        for place in ((topic, ALL_QUEUES), (topic, queue_id)):
            for line in self._lines_at.get(place, ()):
                arrival = self.woken.setdefault(line, _Arrival())
                arrival.count += 1
                arrival.tags_codes.add(tags_code)

    def answer_woken(self) -> bool:
        """Answer the requests for which messages arrived. Returns True if pops were tried, which stores check points.

        `dispatch` follows the answers of later turns.
        """
        woken, self.woken = sorted(self.woken.items()), {}
        for line, arrival in woken:
            offered = self._offer_to_all if line.kind is WaitingKind.PULL else self._offer_to_first
            self._work.append(offered(line, arrival))
        return self._answer_for_a_turn()

    def _offer_to_all(self, line: WaitingLine, arrival: _Arrival) -> Iterator[WaitingKind | None]:
        for held in list(self.lines.get(line, ())):
            if held.wants(arrival.tags_codes):
                self._try(held, last=False)
            yield None

    def _offer_to_first(self, line: WaitingLine, arrival: _Arrival) -> Iterator[WaitingKind | None]:
        """Offer the arrival to as many requests as messages came, until one finds nothing."""
        left = arrival.count
        for held in self._in_turn(line):
            if held.wants(arrival.tags_codes) and not held.done.called:
                left -= held.request.channel.connected_now
                if not self._try(held, last=False):
                    break
                yield line.kind
                if not left:
                    break

    def _in_turn(self, line: WaitingLine) -> list[_Held]:
        waiting = sorted(self.lines.get(line, ()), key=_expiry)
        return waiting[::-1] if line.kind is WaitingKind.NOTIFICATION else waiting

    # turns

    def _answer_for_a_turn(self) -> bool:
        """Work for as long as a turn takes, and do the rest in the next turns. Returns True if pops were tried."""
        if self._next_turn is not None:
            return False
        return self._answer_until(self._clock.seconds() + TURN_SECONDS)

    def _answer_until(self, end: float) -> bool:
        popped, seconds = False, self._clock.seconds
        with self._late.together():
            while self._work:
                for kind in self._work[0]:
                    popped |= kind is WaitingKind.POP
                    if seconds() >= end:
                        self._next_turn = self._clock.callLater(0, self._go_on)
                        return popped
                self._work.popleft()
        return popped

    def _go_on(self) -> None:
        self._next_turn = None
        if self._answer_for_a_turn():
            self._dispatch()

    def wake(self, topic: str, group: str, queue_id: int) -> None:
        """Try waiting pops and notifications of a queue that can be popped again: for all queues first, else for this one."""
        for kind in (WaitingKind.POP, WaitingKind.NOTIFICATION):
            if not self._wake(WaitingLine(kind, topic, group, ALL_QUEUES)):
                self._wake(WaitingLine(kind, topic, group, queue_id))

    def _wake(self, line: WaitingLine) -> bool:
        """Answer a request; False if none waits, or it found nothing."""
        for held in self._in_turn(line):
            gone = not held.request.channel.connected_now
            if not self._try(held, last=False):
                return False
            if not gone:
                return True
        return False

    # ends

    def answer_expired(self, now_ms: int) -> None:
        """Answer the requests whose time is up, and drop those whose connection is gone."""
        self._work.append(self._look_for_expired(now_ms))
        self._answer_for_a_turn()

    def _look_for_expired(self, now_ms: int) -> Iterator[WaitingKind | None]:
        for shares in self._shares.values():
            gone = [one for one in shares.by_connection() if not next(iter(one)).request.channel.connected_now]
            yield from self._ended([held for waiting in gone for held in waiting])
        for end in sorted(end for end in self._ends if end * END_MS <= now_ms):
            yield from self._ended([held for held in self._ends.get(end, ()) if held.expires_ms <= now_ms])

    def answer_queue(self, topic: str, queue_id: int) -> None:
        """Answer the pulls of one queue, because a reader among them has to go on elsewhere."""
        self._end(list(self.lines.get(WaitingLine(WaitingKind.PULL, topic, "", queue_id), ())))

    def offer_queue(self, topic: str, queue_id: int) -> None:
        """Try the pulls of one queue; those that find nothing go on waiting if they can."""
        with self._late.together():
            for held in tuple(self.lines.get(WaitingLine(WaitingKind.PULL, topic, "", queue_id), ())):
                self._try(held, last=False)

    def answer_all(self, *kinds: WaitingKind) -> None:
        """Answer every request of these kinds in this turn, because the broker stops."""
        self._work.append(
            self._ended([held for line, waiting in self.lines.items() if line.kind in kinds for held in waiting])
        )
        if self._next_turn is not None:
            self._next_turn.cancel()
            self._next_turn = None
        self._answer_until(math.inf)

    def _end(self, due: Iterable[_Held]) -> None:
        self._work.append(self._ended(due))
        self._answer_for_a_turn()

    def _ended(self, due: Iterable[_Held]) -> Iterator[WaitingKind | None]:
        for held in due:
            self._try(held, last=True)
            yield held.request.line.kind

    def _expired(self, held: _Held) -> None:
        held.timer = None
        self._try(held, last=True)
        self._dispatch()

    def _cancelled(self, held: _Held) -> None:
        """Forget a request. One whose answer waits until it is durable has left its line already."""
        if held in self.lines.get(held.request.line, ()):
            self._drop(held)
        self._stop_timer(held)

    def _try(self, held: _Held, *, last: bool) -> bool:
        """Answer a request if there is an answer; False if it goes on waiting."""
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
        self._stop_timer(held)
        if isinstance(answer, defer.Deferred):
            answer.addBoth(lambda result: None if held.done.called else held.done.callback(result))
        elif isinstance(answer, failure.Failure):
            held.done.errback(answer)
        else:
            held.done.callback(answer)

    def _stop_timer(self, held: _Held) -> None:
        timer, held.timer = held.timer, None
        if timer is not None:
            timer.cancel()

    # lines

    @staticmethod
    def _places(line: WaitingLine) -> list[Place]:
        """Return the places where a message arrives that concerns the line; for pops also the group's retry topics."""
        if line.kind is WaitingKind.PULL:
            return [(line.topic, line.queue_id)]
        return [(name, line.queue_id) for name in (line.topic, *pop_retry_topics(line.topic, line.group))]

    def _keep(self, held: _Held) -> None:
        line = held.request.line
        if line not in self.lines:
            self.lines[line] = {}
            for place in self._places(line):
                self._lines_at.setdefault(place, {})[line] = None
        self.lines[line][held] = None
        self._counts[line.kind] += 1
        self._shares[line.kind].add(held.share, held.request.channel, held)
        if held.timer is None:
            self._ends.setdefault(held.expires_ms // END_MS, {})[held] = None

    def _drop(self, held: _Held) -> None:
        line = held.request.line
        del self.lines[line][held]
        self._counts[line.kind] -= 1
        self._shares[line.kind].discard(held.share, held.request.channel, held)
        self._forget_end(held)
        if self.lines[line]:
            return
        del self.lines[line]
        for place in self._places(line):
            lines = self._lines_at[place]
            del lines[line]
            if not lines:
                del self._lines_at[place]

    def _forget_end(self, held: _Held) -> None:
        end = held.expires_ms // END_MS
        waiting = self._ends.get(end)
        if waiting is not None and held in waiting:
            del waiting[held]
            if not waiting:
                del self._ends[end]
