"""Computes the lists of an ordered queue after an event: its two lists and the event in, the new lists out. Pure.

    | what the article says | event | send list | consume list |
    |---|---|---|---|
    | a group with a broker that is down leaves the send list | Lost | the group leaves it | as it was |
    | a group that becomes the sender joins the consume list's end first | (promotion) | another head | (head, epoch + 1) joins |
    | a group that is well again and has no backlog joins the send list's end | Ready | the group joins its end | as it was |
    | a group that is consumed and takes no sends leaves the consume list's head | Drained | as it was | its head leaves it |
    | (planned maintenance) | Retired | the group leaves it | as it was |
    | (planned hand-over) | Moved | the group is its head, the old head leaves it | as it was |
    | a sender cannot reach the head and says so | Unreached | the group leaves it, if another one is well | as it was |
    | (the coordinator lost changes) | Reported | as it was, blocked until an operator repairs it | as it was |

An event that leaves the send list with another head promotes that head in the same change. So every reader that sees which
group takes sends also sees that this group is consumed after all those before it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import attrs

from twisted_mq.ordering.lists import Lists, StoreMark, Term

Fault = Callable[[str], str | None]
"""Returns why a group must not take sends, in words (a broker is missing, it is retired, ...); None for a healthy one."""


class Refused(Exception):
    """Raised when a rule does not allow this now; the text says why, and what would allow it."""

    def __init__(self, group: str, reason: str) -> None:
        super().__init__(f"{group}: {reason}")
        self.group = group
        self.reason = reason


class NotWell(Refused):
    """Raised when the group lacks a broker, is retired, or is not declared."""


class HasBacklog(Refused):
    """Raised when the group holds messages that are not consumed."""


class TakesSends(Refused):
    """Raised when the group is the send list's head, because it cannot be drained while it is."""


class NotConsumed(Refused):
    """Raised when another group is consumed before this one."""


class NotWaiting(Refused):
    """Raised when the group is not in the send list."""


@attrs.frozen
class Lost:
    """A broker of the group is gone, or its slave does not keep up."""

    group: str


@attrs.frozen
class Ready:
    """Both brokers of the group are healthy, and all that it holds of the unit is consumed."""

    group: str


@attrs.frozen
class Drained:
    """All that the group took in an epoch is consumed."""

    group: str
    epoch: int


@attrs.frozen
class Retired:
    """An operator wants the group to take no sends."""

    group: str


@attrs.frozen
class Moved:
    """An operator wants the group to take the sends."""

    group: str


@attrs.frozen
class Unreached:
    """The leading producer cannot reach the group in the epoch in which it takes sends, and the group agrees to leave."""

    group: str
    epoch: int


@attrs.frozen
class Reported:
    """A group reports what its store holds, because the lists are older than that, or another group reported so."""

    mark: StoreMark


Event = Lost | Ready | Drained | Retired | Moved | Unreached | Reported


def apply(lists: Lists, event: Event, fault: Fault) -> Lists:
    """Return the lists after an event, the same object if nothing changes. Raises a Refused; `lists` have no fault."""
    return TRANSITIONS[type(event)](lists, event, fault)


def _left(lists: Lists, event: Lost | Retired, fault: Fault) -> Lists:
    if event.group not in lists.send:
        return lists
    rest = tuple(group for group in lists.send if group != event.group)
    return _promoted(lists, rest, fault) if event.group == lists.head else attrs.evolve(lists, send=rest)


def _unreached(lists: Lists, event: Unreached, fault: Fault) -> Lists:
    is_head = lists.head == event.group and lists.epoch == event.epoch
    if not is_head or all(fault(group) is not None for group in lists.send[1:]):
        return lists
    return _promoted(lists, lists.send[1:], fault)


def _ready(lists: Lists, event: Ready, fault: Fault) -> Lists:
    group = event.group
    if group in lists.send:
        return lists
    if lists.has_backlog(group):
        raise HasBacklog(group, "its messages are not consumed yet")
    _check_well(group, fault)
    return attrs.evolve(lists, send=(*lists.send, group)) if lists.send else _promoted(lists, (group,), fault)


def _drained(lists: Lists, event: Drained, fault: Fault) -> Lists:
    term = Term(event.group, event.epoch)
    if term not in lists.consume:
        return lists
    if lists.consumed != term:
        raise NotConsumed(event.group, f"{lists.consume[0].group} is consumed before it")
    if lists.head == event.group:
        raise TakesSends(event.group, "it accepts sends")
    return attrs.evolve(lists, consume=lists.consume[1:])


def _moved(lists: Lists, event: Moved, fault: Fault) -> Lists:
    group = event.group
    if group == lists.head:
        return lists
    _check_well(group, fault)
    if lists.has_backlog(group):
        raise HasBacklog(group, "its messages are not consumed yet; after that it joins the send list")
    if group not in lists.send:
        raise NotWaiting(group, "it is not in the send list; its master adds it when it knows the topic")
    return _promoted(lists, (group, *(one for one in lists.send[1:] if one != group)), fault)


def _reported(lists: Lists, event: Reported, fault: Fault) -> Lists:
    mark = event.mark
    if not lists.stores and not lists.is_behind(mark):
        return lists
    known = {one.group: one for one in lists.stores}
    if mark.group in known:
        other = known[mark.group]
        mark = StoreMark(mark.group, max(mark.epoch, other.epoch), max(mark.leader, other.leader))
        if mark == other:
            return lists
    known[mark.group] = mark
    return attrs.evolve(lists, stores=tuple(known[group] for group in sorted(known)))


def repaired(lists: Lists) -> Lists:
    """Return the lists after a repair: everything in the stores is to be consumed, in the order of its epochs, and no
    group sends.

    Terms that were drained after the lists' time join again, and are drained at once. If two groups took messages in one
    epoch, the group that the lists do not know took them first. From then on all epochs of all groups are known.
    """
    behind = {mark.group: Term(mark.group, mark.epoch) for mark in lists.stores if lists.is_behind(mark)}
    terms = [*behind.values(), *(term for term in lists.consume if term.group not in behind)]
    epochs = [term.epoch for term in terms]
    led: dict[str, int] = {}
    for one in (*lists.led, *terms, *(Term(mark.group, mark.epoch) for mark in lists.stores)):
        led[one.group] = max(led.get(one.group, 0), one.epoch)
    leaders = tuple(Term(group, led[group]) for group in sorted(led) if led[group])
    consume = tuple(sorted(terms, key=lambda term: term.epoch))
    forks = tuple(term for term in behind.values() if epochs.count(term.epoch) > 1)
    return Lists(max(lists.epoch, *epochs) + 1, (), consume, (), forks, leaders)


def _check_well(group: str, fault: Fault) -> None:
    reason = fault(group)
    if reason is not None:
        raise NotWell(group, reason)


def _promoted(lists: Lists, candidates: Sequence[str], fault: Fault) -> Lists:
    """Promote the first healthy candidate to head; those before it leave the send list with the old one."""
    for place, group in enumerate(candidates):
        if fault(group) is None:
            epoch = lists.epoch + 1
            term = Term(group, epoch)
            consume, led = (*lists.consume, term), lists.with_leader(term)
            return attrs.evolve(lists, epoch=epoch, send=tuple(candidates[place:]), consume=consume, led=led)
    return attrs.evolve(lists, send=())


Transition = Callable[[Lists, Any, Fault], Lists]

TRANSITIONS: Mapping[type, Transition] = MappingProxyType(
    {
        Lost: _left,
        Ready: _ready,
        Drained: _drained,
        Retired: _left,
        Moved: _moved,
        Unreached: _unreached,
        Reported: _reported,
    }
)


def fault_of(lists: Lists) -> tuple[str, str] | None:
    """Return the list and what is wrong in it, for lists that no row of the table leads to; None for sound ones."""
    groups = [term.group for term in lists.consume]
    epochs = [term.epoch for term in lists.consume]
    leaders = [term.group for term in lists.led]
    last = lists.consume[-1] if lists.consume else None
    rows = (
        ("send", len(set(lists.send)) < len(lists.send), "has a group twice"),
        ("consume", len(set(groups)) < len(groups), "has a group twice"),
        ("consume", sorted(epochs) != epochs, "has epochs that go down"),
        ("consume", any(not 1 <= epoch <= lists.epoch for epoch in epochs), "has an epoch that is not one of 1 to epoch"),
        ("consume", lists.head is not None and last != Term(lists.head, lists.epoch), "does not end with the send list's head"),
        ("led", len(set(leaders)) < len(leaders), "has a group twice"),
        ("led", any(not 1 <= term.epoch <= lists.epoch for term in lists.led), "has an epoch that is not one of 1 to epoch"),
        ("send", not set(lists.send[1:]).isdisjoint(groups), "has a group after its head that is not consumed yet"),
    )  # fmt: skip
    return next(((name, what) for name, wrong, what in rows if wrong), None)
