"""Two groups, one queue, a few messages, no clock: every order in which things may happen, with the real rules of the lists.

A state is a value, a step makes others of it. A process that is paused, or whose clock stands still, takes no step while
all others do: every such history is among the interleavings. The coordinator may end a master's session at any moment, and
that master goes on believing what it believed until it takes the step in which it notices.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from twisted_mq.ordering.lists import Lists, Term
from twisted_mq.ordering.rules import Drained, Event, Lost, Moved, Ready, Refused, apply

NAMES = ("a", "b")

WITHDRAW = "a slave confirms no session that is over, before it speaks for the group"
CARRIED = "an acknowledgement counts in the session that it was given in"
ABSENT = "a slave's word is taken in one change with a check that its master's node is gone"
CLOSED = "a master speaks only when it takes no sends"
FORGET = "a master makes its node only while it is head of nothing"
RULES = (WITHDRAW, CARRIED, ABSENT, CLOSED, FORGET)


class Group(NamedTuple):
    """A master, its slave, and the link between them."""

    log: tuple[tuple[int, int], ...] = ()
    """(epoch, message) of the master; the slave has the first `held`."""
    held: int = 0
    session: int = 1
    """That the master believes to have; `node` is that at the coordinator, 0 for none."""
    node: int = 1
    head: int = 0
    """The epoch in which the master takes sends, as far as it knows."""
    outside: bool = False
    seen: int = 1
    """The master's node as the slave saw it last."""
    link: tuple[tuple[int, int], ...] = ()
    """Reports on their way: (up to where the slave holds the log, the session in which that counts)."""
    counted: int = 0
    reported: int = 0
    done: int = 0
    """The number of messages, from the first one on, that consumers committed."""


class State(NamedTuple):
    groups: tuple[Group, Group] = (Group(), Group())
    lists: int = 0
    """Their number in the model: each occurs once, and is compared by that."""
    bases: tuple[int, ...] = ()
    """The message that the producer of each epoch begins with. Its frames arrive at any time, while the head takes them."""
    acknowledged: int = 0
    """So many messages, the first ones: an answer speaks for all before it."""
    consumed: int = 0
    ends: int = 0
    moves: int = 0


class Broken(AssertionError):
    """An invariant does not hold; the text names it."""


class TermModel:
    """`messages`, and how often sessions end and heads change by a hand, bound the histories. `without` takes a rule out."""

    def __init__(self, messages: int, ends: int, moves: int, without: str | None = None) -> None:
        self.messages = messages
        self.ends = ends
        self.moves = moves
        self.without = without
        self._lists = [Lists()]
        self._numbers = {Lists(): 0}
        self._after: dict[tuple[int, Event, tuple[bool, ...]], int] = {}

    def explore(self, most: int | None = None) -> int:
        """Visit every state that can be reached; how many there are. Raises Broken."""
        first = State()
        seen, waiting = {first}, [first]
        while waiting:
            for state in self.steps(waiting.pop()):
                if state not in seen:
                    seen.add(state)
                    waiting.append(state)
            if most is not None and len(seen) > most:
                raise RuntimeError(f"more than {most} states")
        return len(seen)

    def steps(self, state: State) -> Iterator[State]:
        """All that may happen next."""
        for place in range(len(NAMES)):
            yield from self._session(state, place)
            yield from self._replication(state, place)
            yield from self._telling(state, place)
            yield from self._sends(state, place)
        yield from self._consumption(state)

    def _has(self, rule: str) -> bool:
        return rule != self.without

    # sessions

    def _session(self, state: State, place: int) -> Iterator[State]:
        group = state.groups[place]
        if group.node and state.ends < self.ends:
            yield _with(state, place, node=0)._replace(ends=state.ends + 1)
        if not group.node:
            fresh = group.session + 1
            kept = {} if not self._has(FORGET) else {"head": 0, "outside": False}
            yield _with(state, place, session=fresh, node=fresh, counted=0, **kept)
        elif group.node == group.session:
            yield from self._learns(state, place, group)
        if group.seen != group.node:
            yield self._slave_sees(state, place, group)

    def _learns(self, state: State, place: int, group: Group) -> Iterator[State]:
        """A master that is connected sees the lists; a paused one does so later, or never."""
        lists, name = self._lists[state.lists], NAMES[place]
        outside = group.outside or name not in lists.send
        head = lists.epoch if lists.head == name and outside else 0
        if self._has(FORGET) or head:
            if (outside, head) != (group.outside, group.head):
                yield _with(state, place, outside=outside, head=head)
        elif outside != group.outside:
            yield _with(state, place, outside=outside)

    def _slave_sees(self, state: State, place: int, group: Group) -> State:
        confirms = group.node if group.node or self._has(WITHDRAW) else group.seen
        told = confirms and (group.held, confirms)
        return _with(state, place, seen=group.node, link=_joined(group.link, told) if told else group.link)

    # the link

    def _replication(self, state: State, place: int) -> Iterator[State]:
        group = state.groups[place]
        if group.held < len(group.log):
            session = group.seen if group.seen or self._has(WITHDRAW) else group.session
            yield _with(state, place, held=group.held + 1, link=_joined(group.link, (group.held + 1, session)))
        if group.link:
            (held, session), *rest = group.link
            counts = session == group.session or not self._has(CARRIED)
            counted = max(group.counted, held) if counts else group.counted
            after = _with(state, place, link=tuple(rest), counted=counted, reported=max(group.reported, held))
            yield self._answered(after, place)

    def _answered(self, state: State, place: int) -> State:
        """The master acknowledges what counts, in the epoch in which it takes sends."""
        group = state.groups[place]
        acknowledged = state.acknowledged
        for offset in range(group.counted):
            epoch, message = group.log[offset]
            if epoch != group.head or message < acknowledged:
                continue
            if Term(NAMES[place], epoch) not in self._lists[state.lists].consume and message >= state.consumed:
                raise Broken(f"NoLateAcknowledgement: {message} in a term that is over: {state}")
            acknowledged = message + 1
        return state._replace(acknowledged=acknowledged)

    # sends

    def _sends(self, state: State, place: int) -> Iterator[State]:
        group = state.groups[place]
        if not group.head:
            return
        has_begun = group.log and group.log[-1][0] == group.head
        message = group.log[-1][1] + 1 if has_begun else state.bases[group.head - 1]
        if message < self.messages:
            yield self._answered(_with(state, place, log=(*group.log, (group.head, message))), place)

    # what is told

    def _telling(self, state: State, place: int) -> Iterator[State]:
        group, name, lists = state.groups[place], NAMES[place], self._lists[state.lists]
        master_tells = group.node == group.session and group.node
        if name in lists.send and state.moves < self.moves:
            yield from self._told(state._replace(moves=state.moves + 1), place, Lost(name))
            yield from self._told(state._replace(moves=state.moves + 1), place, Moved(name))
        if name in lists.send and not group.node:
            yield from self._told(state, place, Lost(name))
        if master_tells and name in lists.send and not group.outside:
            yield from self._told(state, place, Lost(name))
        if master_tells and group.outside and not group.head and name not in lists.send and not lists.has_backlog(name):
            yield from self._told(_with(state, place, done=len(group.log)), place, Ready(name))
        term = lists.consumed
        if term is None or term.group != name or lists.head == name:
            return
        by_master = master_tells and (not group.head or not self._has(CLOSED)) and group.done >= group.reported
        by_slave = not group.seen and (not group.node or not self._has(ABSENT)) and group.done >= group.held
        if by_master or by_slave:
            yield from self._told(state, place, Drained(name, term.epoch))

    def _told(self, state: State, place: int, event: Event) -> Iterator[State]:
        key = state.lists, event, tuple(bool(group.node) for group in state.groups)
        number = self._after.get(key)
        if number is None:
            number = self._after[key] = self._applied(*key)
        if number != state.lists:
            more = self._lists[number].epoch - len(state.bases)
            yield state._replace(lists=number, bases=state.bases + (state.acknowledged,) * more)

    def _applied(self, number: int, event: Event, living: tuple[bool, ...]) -> int:
        try:
            lists = apply(
                self._lists[number], event, lambda name: None if living[NAMES.index(name)] else "its master is gone"
            )
        except Refused:
            return number
        if lists not in self._numbers:
            self._numbers[lists] = len(self._lists)
            self._lists.append(lists)
        return self._numbers[lists]

    # consumers

    def _consumption(self, state: State) -> Iterator[State]:
        term = self._lists[state.lists].consumed
        if term is None:
            return
        place = NAMES.index(term.group)
        group = state.groups[place]
        if group.done >= group.held:
            return
        epoch, message = group.log[group.done]
        after = _with(state, place, done=group.done + 1)
        if epoch < term.epoch or message < state.consumed:
            yield after
            return
        if message > state.consumed:
            raise Broken(f"InOrder: {message} after {state.consumed - 1}: {state}")
        yield after._replace(consumed=message + 1)


def _with(state: State, place: int, **changes: object) -> State:
    groups = list(state.groups)
    groups[place] = groups[place]._replace(**changes)  # type: ignore[arg-type]
    return state._replace(groups=tuple(groups))  # type: ignore[arg-type]


def _joined(link: tuple[tuple[int, int], ...], report: tuple[int, int]) -> tuple[tuple[int, int], ...]:
    """Reports of one session are as good as their last one."""
    kept = link[:-1] if link and link[-1][1] == report[1] else link
    return (*kept, report)
