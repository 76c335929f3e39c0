"""Each row of the table in duties.py."""

from __future__ import annotations

import pytest

from twisted_mq.broker.ordering.duties import Standpoint, duty
from twisted_mq.ordering.lists import Lists, Term
from twisted_mq.ordering.rules import Drained, Lost, Ready

A1, B2 = Term("a", 1), Term("b", 2)
SENDING = Lists(1, ("a", "b"), (A1,))
MOVED_ON = Lists(2, ("b",), (A1, B2))


def who(group: str = "a", **changes: object) -> Standpoint:
    values = {"is_master": True, "is_keeper": False, "declared": True, "seen_outside": True,
              "has_consumed": lambda term: False} | changes  # fmt: skip
    return Standpoint(group, **values)


def ill(*groups: str):
    return lambda group: "its slave is missing" if group in groups else None


ROWS = [
    (SENDING, who("a"), ill(), None),
    (SENDING, who("c", is_keeper=True), ill("a"), Lost("a")),
    (SENDING, who("c", is_keeper=True), ill("b"), Lost("b")),
    (SENDING, who("c"), ill("a"), Ready("c")),
    (SENDING, who("a"), ill("a"), Lost("a")),
    (SENDING, who("a", is_master=False), ill("a"), Lost("a")),
    (SENDING, who("a", is_master=False), ill("b"), None),
    (SENDING, who("b"), ill("a"), None),
    (SENDING, who("a", seen_outside=False), ill(), Lost("a")),
    (SENDING, who("a", seen_outside=False, is_master=False), ill(), None),
    (MOVED_ON, who("a", has_consumed=lambda term: term == A1), ill(), Drained("a", 1)),
    (MOVED_ON, who("a", has_consumed=lambda term: term == A1, is_master=False), ill("a"), Drained("a", 1)),
    (MOVED_ON, who("a"), ill(), None),
    (SENDING, who("a", has_consumed=lambda term: True), ill(), None),
    (MOVED_ON, who("b", has_consumed=lambda term: True), ill(), None),
    (SENDING, who("c"), ill(), Ready("c")),
    (SENDING, who("c", is_master=False), ill(), None),
    (SENDING, who("c", declared=False), ill(), None),
    (SENDING, who("c"), ill("c"), None),
    (MOVED_ON, who("a"), ill(), None),
    (Lists(), who("a"), ill(), Ready("a")),
]  # fmt: skip


@pytest.mark.parametrize(("lists", "standpoint", "fault", "event"), ROWS)
def test_row(lists, standpoint, fault, event):
    assert duty(lists, standpoint, fault) == event
