"""All short histories of three groups, each with the coordinator restored from each state that it had before.

Groups are promoted before their stores are compared with the lists, because brokers of others are up first. Or one group comes
back only after the others took and consumed messages in the lost epochs. Then either a mark blocks the queue, or the lists
name every term that is not consumed, in the order in which the terms were.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from itertools import combinations

import attrs

from twisted_mq.ordering.lists import Lists, StoreMark, Term
from twisted_mq.ordering.rules import Drained, Fault, Lost, Ready, Refused, apply

GROUPS = ("a", "b", "c")
STEPS_BEFORE, STEPS_LOST, STEPS_WITHOUT = 5, 5, 5


@attrs.frozen
class World:
    """The lists, the epoch of the newest message in each group's store, and the terms with unconsumed messages."""

    lists: Lists = attrs.field(factory=Lists)
    newest: tuple[int, ...] = (0, 0, 0)
    unconsumed: tuple[Term, ...] = ()


def with_faults(*groups: str) -> Fault:
    return lambda group: "a broker is down" if group in groups else None


FAULTS = [with_faults(*groups) for count in range(3) for groups in combinations(GROUPS, count)]


def promotions(lists: Lists, absent: str = "") -> Iterator[Lists]:
    """Return the lists after the loss of each group, with each choice of the others that are well."""
    for group in lists.send:
        for fault in FAULTS:
            if fault(group) is not None and (not absent or fault(absent) is not None):
                yield apply(lists, Lost(group), fault)


def steps(world: World) -> Iterator[World]:
    lists = world.lists
    for after in promotions(lists):
        yield attrs.evolve(world, lists=after)
    for group in GROUPS:
        try:
            yield attrs.evolve(world, lists=apply(lists, Ready(group), with_faults()))
        except Refused:
            continue
    if lists.consumed is not None and lists.consumed.group != lists.head:
        term = lists.consumed
        rest = tuple(one for one in world.unconsumed if one != term)
        yield attrs.evolve(world, lists=apply(lists, Drained(term.group, term.epoch), with_faults()), unconsumed=rest)
    if lists.head is not None:
        term = Term(lists.head, lists.epoch)
        newest = tuple(
            lists.epoch if group == lists.head else old for group, old in zip(GROUPS, world.newest, strict=True)
        )
        yield World(lists, newest, world.unconsumed if term in world.unconsumed else (*world.unconsumed, term))


def reachable(world: World, depth: int) -> set[World]:
    found, edge = {world}, {world}
    for _ in range(depth):
        edge = {after for one in edge for after in steps(one)} - found
        found |= edge
    return found


def promoted_in_silence(lists: Lists) -> set[Lists]:
    found, edge = {lists}, {lists}
    while edge:
        edge = {after for one in edge for after in promotions(one)} - found
        found |= edge
    return found


def is_explained(world: World, lists: Lists) -> bool:
    """Return whether the lists name every term of the world that is not consumed, in its order."""
    ordered = iter(lists.consume)
    return all(term in ordered for term in world.unconsumed)


def is_blocked(newest: Mapping[str, int], lists: Lists) -> bool:
    return any(lists.is_behind(StoreMark(group, epoch)) for group, epoch in newest.items() if epoch)


def test_a_restored_coordinator_is_noticed_or_knows_every_unconsumed_term() -> None:
    blocked = explained = promoted = 0
    for before in reachable(World(), STEPS_BEFORE):
        silent = promoted_in_silence(before.lists)
        for world in reachable(before, STEPS_LOST):
            newest = dict(zip(GROUPS, world.newest, strict=True))
            for lists in silent:
                if is_blocked(newest, lists):
                    blocked += 1
                    continue
                assert is_explained(world, lists), (before.lists, world, lists)
                explained += 1
                promoted += lists != before.lists and before.unconsumed != world.unconsumed
    assert blocked > 1000, "few of these histories were noticed"
    assert promoted > 100, "few of them had a group that was promoted in silence in a term that it had before"
    assert explained > promoted


def continued_without(lists: Lists, absent: str) -> set[Lists]:
    """Return what the lists may become while a group has no broker."""
    found, edge = {lists}, {lists}
    for _ in range(STEPS_WITHOUT):
        edge = {after for one in edge for after in _next_without(one, absent)} - found
        found |= edge
    return found


def _next_without(lists: Lists, absent: str) -> Iterator[Lists]:
    yield from promotions(lists, absent)
    for group in GROUPS:
        if group != absent:
            with contextlib.suppress(Refused):
                yield apply(lists, Ready(group), with_faults(absent))
    term = lists.consumed
    if term is not None and term.group not in (lists.head, absent):
        yield apply(lists, Drained(term.group, term.epoch), with_faults(absent))


def test_a_group_that_returns_after_others_used_its_epochs_is_noticed() -> None:
    blocked = used_again = 0
    for before in reachable(World(), STEPS_BEFORE):
        worlds = reachable(before, STEPS_LOST)
        for place, absent in enumerate(GROUPS):
            others = [(group, number) for number, group in enumerate(GROUPS) if group != absent]
            alone = {
                (world.newest[place], tuple(term for term in world.unconsumed if term.group == absent))
                for world in worlds
                if not is_blocked({group: world.newest[number] for group, number in others}, before.lists)
            }
            for newest, unconsumed in alone:
                for lists in continued_without(before.lists, absent):
                    if lists.is_behind(StoreMark(absent, newest)):
                        blocked += 1
                        used_again += newest <= lists.epoch and all(term.epoch != newest for term in lists.consume)
                    else:
                        assert set(unconsumed) <= set(lists.consume), (before.lists, newest, unconsumed, lists)
    assert blocked > 1000
    assert used_again > 100, "few of them came back after their epoch was another group's, and consumed"
