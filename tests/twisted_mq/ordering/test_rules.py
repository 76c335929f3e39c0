"""Each line of the article (rules.py has them as a table), what is refused, and lists that no event leads to."""

from __future__ import annotations

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from twisted_mq.ordering.lists import Lists, StoreMark, Term
from twisted_mq.ordering.rules import (
    TRANSITIONS,
    Drained,
    Event,
    HasBacklog,
    Lost,
    Moved,
    NotConsumed,
    NotWaiting,
    NotWell,
    Ready,
    Refused,
    Reported,
    Retired,
    TakesSends,
    Unreached,
    apply,
    fault_of,
    repaired,
)

A1, B2, C3 = Term("a", 1), Term("b", 2), Term("c", 3)


def well(group: str) -> str | None:
    return None


def all_but(*ill: str):
    return lambda group: "its slave is missing" if group in ill else None


ROWS = [
    # the first group that is ready takes sends, and is consumed from then on
    (Lists(), Ready("a"), well, Lists(1, ("a",), (A1,))),
    # others wait behind it, in the order in which they come
    (Lists(1, ("a",), (A1,)), Ready("b"), well, Lists(1, ("a", "b"), (A1,))),
    (Lists(1, ("a", "b"), (A1,)), Ready("c"), well, Lists(1, ("a", "b", "c"), (A1,))),
    # a broker is down: its group leaves the send list; the new sender joins the consume list's end
    (Lists(1, ("a", "b", "c"), (A1,)), Lost("a"), well, Lists(2, ("b", "c"), (A1, B2))),
    (Lists(1, ("a", "b", "c"), (A1,)), Lost("b"), well, Lists(1, ("a", "c"), (A1,))),
    (Lists(1, ("a", "b", "c"), (A1,)), Lost("c"), well, Lists(1, ("a", "b"), (A1,))),
    # never one that is not well
    (Lists(1, ("a", "b", "c"), (A1,)), Lost("a"), all_but("b"), Lists(2, ("c",), (A1, Term("c", 2)))),
    # no group is free: senders wait, consumers go on
    (Lists(1, ("a",), (A1,)), Lost("a"), well, Lists(1, (), (A1,))),
    (Lists(1, ("a", "b"), (A1,)), Lost("a"), all_but("b"), Lists(1, (), (A1,))),
    # the next that is ready takes sends, also where others are still consumed
    (Lists(1, (), (A1,)), Ready("b"), well, Lists(2, ("b",), (A1, B2))),
    # what a group took is consumed, and it takes no sends any more: the next is consumed
    (Lists(2, ("b", "c"), (A1, B2)), Drained("a", 1), well, Lists(2, ("b", "c"), (B2,))),
    (Lists(1, (), (A1,)), Drained("a", 1), well, Lists(1, (), ())),
    # then it may come back to the send list's end
    (Lists(2, ("b", "c"), (B2,)), Ready("a"), well, Lists(2, ("b", "c", "a"), (B2,))),
    (Lists(1, (), ()), Ready("a"), well, Lists(2, ("a",), (Term("a", 2),))),
    # the coordinator went back: a store is newer than the lists, then each group says what it holds
    (Lists(1, ("a",), (A1,)), Reported(StoreMark("b", 2, 7)), well, Lists(1, ("a",), (A1,), (StoreMark("b", 2, 7),))),
    (Lists(1, (), (A1,)), Reported(StoreMark("b", 1, 7)), well, Lists(1, (), (A1,), (StoreMark("b", 1, 7),))),
    (Lists(3), Reported(StoreMark("b", 1, 7)), well, Lists(3, (), (), (StoreMark("b", 1, 7),))),
    (
        Lists(1, (), (A1,), (StoreMark("b", 2, 7),)),
        Reported(StoreMark("a", 1, 6)),
        well,
        Lists(1, (), (A1,), (StoreMark("a", 1, 6), StoreMark("b", 2, 7))),
    ),
    (
        Lists(1, (), (A1,), (StoreMark("b", 2, 7),)),
        Reported(StoreMark("b", 1, 9)),
        well,
        Lists(1, (), (A1,), (StoreMark("b", 2, 9),)),
    ),
    # the producer that leads cannot reach the head: another group that is well takes over
    (Lists(1, ("a", "b", "c"), (A1,)), Unreached("a", 1), well, Lists(2, ("b", "c"), (A1, B2))),
    (Lists(1, ("a", "b", "c"), (A1,)), Unreached("a", 1), all_but("b"), Lists(2, ("c",), (A1, Term("c", 2)))),
    # operators
    (Lists(1, ("a", "b"), (A1,)), Retired("a"), well, Lists(2, ("b",), (A1, B2))),
    (Lists(1, ("a", "b", "c"), (A1,)), Moved("c"), well, Lists(2, ("c", "b"), (A1, Term("c", 2)))),
]


@pytest.mark.parametrize(("before", "event", "fault", "after"), ROWS)
def test_row(before, event, fault, after):
    found = apply(before, event, fault)
    assert attrs.evolve(found, led=before.led) == after
    assert fault_of(before) is None
    assert fault_of(found) is None
    promoted = found.epoch > before.epoch
    assert found.led == ((Term(found.head, found.epoch),) if promoted else ())


def test_the_newest_epoch_of_each_head_is_kept():
    lists = Lists()
    for event in (Ready("b"), Ready("a"), Lost("b"), Drained("b", 1), Ready("b"), Lost("a"), Drained("a", 2)):
        lists = apply(lists, event, well)
    assert lists == Lists(3, ("b",), (Term("b", 3),), led=(Term("a", 2), Term("b", 3)))


NOTHING = [
    (Lists(1, ("a",), (A1,)), Lost("b")),
    (Lists(1, ("a",), (A1,)), Retired("b")),
    (Lists(1, ("a", "b"), (A1,)), Ready("a")),
    (Lists(1, ("a", "b"), (A1,)), Ready("b")),
    (Lists(2, ("b",), (B2,)), Drained("a", 1)),
    (Lists(1, ("a",), (A1,)), Moved("a")),
    (Lists(2, ("b", "a"), (B2,)), Unreached("b", 1)),
    (Lists(2, ("b", "a"), (B2,)), Unreached("a", 2)),
    (Lists(1, ("a", "b"), (A1,), led=(A1,)), Reported(StoreMark("a", 1, 7))),
    (Lists(2, ("b",), (B2,), led=(A1, B2)), Reported(StoreMark("a", 1, 7))),
    (Lists(2, ("b",), (B2,), led_from=2), Reported(StoreMark("a", 1, 7))),
    (Lists(1, (), (A1,), (StoreMark("b", 2, 7),)), Reported(StoreMark("b", 1, 7))),
    (Lists(3, (), (B2, Term("a", 2)), (), (B2,), (Term("a", 2), B2)), Reported(StoreMark("b", 2, 7))),
    (Lists(3, (), (Term("a", 2),), (), (B2,), (Term("a", 2), B2)), Reported(StoreMark("b", 2, 7))),
]


def test_head_that_cannot_be_reached_stays_without_another_group_that_is_well():
    lists = Lists(1, ("a", "b"), (A1,))
    assert apply(lists, Unreached("a", 1), all_but("b")) is lists


@pytest.mark.parametrize(("lists", "event"), NOTHING)
def test_what_is_so_already_changes_nothing(lists, event):
    assert apply(lists, event, well) is lists


REFUSED = [
    (Lists(2, ("b",), (A1, B2)), Ready("a"), well, HasBacklog),
    (Lists(2, ("b",), (B2,)), Ready("a"), all_but("a"), NotWell),
    (Lists(1, ("a",), (A1,)), Drained("a", 1), well, TakesSends),
    (Lists(3, ("c",), (A1, B2, C3)), Drained("b", 2), well, NotConsumed),
    (Lists(1, ("a", "b"), (A1,)), Moved("b"), all_but("b"), NotWell),
    (Lists(1, ("a",), (A1,)), Moved("b"), well, NotWaiting),
    (Lists(2, ("b",), (A1, B2)), Moved("a"), well, HasBacklog),
]


@pytest.mark.parametrize(("lists", "event", "fault", "kind"), REFUSED)
def test_refusal_names_the_group_and_the_reason(lists, event, fault, kind):
    with pytest.raises(kind) as caught:
        apply(lists, event, fault)
    assert caught.value.group == event.group
    assert str(caught.value) == f"{event.group}: {caught.value.reason}"
    assert caught.value.reason


IMPOSSIBLE = [
    (Lists(1, ("a", "b", "b"), (A1,)), ("send", "has a group twice")),
    (Lists(2, ("a",), (A1, Term("a", 2))), ("consume", "has a group twice")),
    (Lists(2, ("a",), (B2, A1)), ("consume", "has epochs that go down")),
    (Lists(1, (), (B2,)), ("consume", "has an epoch that is not one of 1 to epoch")),
    (Lists(1, (), (Term("a", 0),)), ("consume", "has an epoch that is not one of 1 to epoch")),
    (Lists(2, ("a",), (A1,)), ("consume", "does not end with the send list's head")),
    (Lists(1, ("a",), ()), ("consume", "does not end with the send list's head")),
    (Lists(2, ("b", "a"), (A1, B2)), ("send", "has a group after its head that is not consumed yet")),
    (Lists(2, led=(A1, Term("a", 2))), ("led", "has a group twice")),
    (Lists(1, led=(B2,)), ("led", "has an epoch that is not one of 1 to epoch")),
]


@pytest.mark.parametrize(("lists", "fault"), IMPOSSIBLE)
def test_lists_that_no_event_leads_to_are_found(lists, fault):
    assert fault_of(lists) == fault


A3 = Term("a", 3)
OLD = Lists(3, ("a",), (B2, A3), led=(A3, B2))
OLD_VERSION = attrs.evolve(OLD, led=(), led_from=3)
REPAIRS = [
    # what the lists do not know is consumed behind what they know
    (OLD, (StoreMark("a", 3), StoreMark("b", 2), StoreMark("c", 4)), (B2, A3, Term("c", 4)), ()),
    (OLD, (StoreMark("a", 6), StoreMark("b", 5), StoreMark("c", 0)), (Term("b", 5), Term("a", 6)), ()),
    (OLD_VERSION, (StoreMark("a", 3), StoreMark("b", 2), StoreMark("c", 4)), (B2, A3, Term("c", 4)), ()),
    (OLD_VERSION, (StoreMark("a", 5), StoreMark("b", 1), StoreMark("c", 1)), (B2, Term("a", 5)), ()),
    # an epoch that was given twice: what the lists do not know was sent before they went back
    (OLD_VERSION, (StoreMark("a", 3), StoreMark("b", 2), StoreMark("c", 3)), (B2, C3, A3), (C3,)),
    (OLD, (StoreMark("a", 3), StoreMark("b", 2), StoreMark("c", 3)), (B2, C3, A3), (C3,)),
]


@pytest.mark.parametrize(("lists", "stores", "consume", "forks"), REPAIRS)
def test_repair_has_all_consumed_that_stores_hold_and_raises_the_epoch(lists, stores, consume, forks):
    after = repaired(attrs.evolve(lists, stores=stores))
    newest = max(lists.epoch, *(mark.epoch for mark in stores))
    assert attrs.evolve(after, led=()) == Lists(newest + 1, (), consume, (), forks)
    assert fault_of(after) is None
    for group, epoch, _leader in map(attrs.astuple, stores):
        assert not after.is_behind(StoreMark(group, epoch))
        known = max(epoch, *(term.epoch for term in (*lists.led, *lists.consume) if term.group == group), 0)
        assert after.is_behind(StoreMark(group, known + 1)), "all is known from then on"


GROUPS = st.sampled_from("abcd")
EVENTS = st.one_of(
    GROUPS.map(Lost), GROUPS.map(Ready), GROUPS.map(Retired), GROUPS.map(Moved),
    st.builds(Drained, GROUPS, st.integers(1, 6)),
)  # fmt: skip


@given(st.lists(st.tuples(EVENTS, st.frozensets(GROUPS, max_size=2))))
def test_whatever_happens_lists_stay_sound_and_heads_are_well(history: list[tuple[Event, frozenset[str]]]):
    lists = Lists()
    for event, ill in history:
        before = lists
        try:
            lists = apply(before, event, all_but(*ill))
        except Refused:
            continue
        assert fault_of(lists) is None
        assert lists.epoch >= before.epoch
        if lists.head is not None and lists.head != before.head:
            assert lists.head not in ill
            assert lists.epoch == before.epoch + 1
        rest = [term for term in before.consume if term in lists.consume]
        assert list(lists.consume[: len(rest)]) == rest, "nobody overtakes a group that is to be consumed"


def test_every_event_has_a_transition():
    assert set(TRANSITIONS) == set(Event.__args__)
