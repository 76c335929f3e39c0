"""Audit of the order of ordered queues in the stores of all groups: terms, and planted faults."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.ordered_stores import OrderedStores
from twisted_mq.storage.errors import NoStore
from twisted_mq.storage.tools.order_audit import OrderFault, OrderTerm, audit_order
from twisted_mq.storage.tools.order_marks import read_marks


@pytest.fixture
def stores(tmp_path: Path) -> OrderedStores:
    return OrderedStores(tmp_path)


def faults(stores: OrderedStores) -> list[tuple[object, ...]]:
    """(kind, epoch, leader, first, last, store's name, number of the message in its store)."""
    marks = read_marks(stores.write())
    return [
        (
            *(one.kind, one.epoch, one.leader, one.first, one.last, Path(one.store).name),
            stores.number(one.store, one.physical),
        )
        for one in audit_order(marks).faults
    ]


def test_a_queue_that_moved_twice_is_in_order(stores: OrderedStores) -> None:
    stores.send("a", 1, 0, range(1, 6))
    stores.send("b", 2, 0, range(4, 9), base=4)
    stores.send("a", 3, 4, range(1, 3))
    stores.copy("a", "a-slave")
    paths = stores.write()
    found = audit_order(read_marks(paths))
    a, b, slave = paths
    assert found.terms == (
        OrderTerm("Orders", 0, 1, 0, (a, slave), 5, 1, 5, 0, 4, 0),
        OrderTerm("Orders", 0, 2, 0, (b,), 5, 4, 8, 0, 4, 2),
        OrderTerm("Orders", 0, 3, 4, (a, slave), 2, 1, 2, 5, 6, 0),
    )
    assert found.faults == ()


def test_what_was_deleted_at_the_beginning_is_not_missed(stores: OrderedStores) -> None:
    stores.send("a", 7, 3, range(41, 44), base=40)
    stores.send("b", 8, 4, range(1, 3))
    assert faults(stores) == []


def test_a_gap_in_an_epoch_and_one_between_epochs(stores: OrderedStores) -> None:
    stores.send("a", 1, 0, [1, 2, 5])
    stores.send("b", 2, 0, [9, 10], base=9)
    stores.send("b", 2, 1, [3])
    assert faults(stores) == [
        ("gap", 1, 0, 3, 4, "a", 2),
        ("gap", 2, 1, 1, 2, "b", 2),
        ("gap", 2, 0, 6, 8, "b", 0),
    ]


def test_a_swap(stores: OrderedStores) -> None:
    stores.send("a", 1, 0, [1, 3, 2, 4])
    assert faults(stores) == [("swap", 1, 0, 2, 2, "a", 2)]


def test_a_swap_of_messages_that_came_again(stores: OrderedStores) -> None:
    stores.send("a", 1, 0, [1, 2, 3])
    stores.send("b", 2, 0, [3, 2, 4], base=2)
    assert faults(stores) == [("swap", 2, 0, 2, 2, "b", 1)]


def test_a_swap_between_epochs(stores: OrderedStores) -> None:
    stores.send("a", 1, 0, [1, 2, 4])
    stores.send("b", 2, 0, [3, 4], base=3)
    assert faults(stores) == [("swap", 2, 0, 3, 3, "b", 0)]


def test_a_repeat_in_an_epoch(stores: OrderedStores) -> None:
    stores.send("a", 1, 0, [1, 2, 2, 3])
    assert faults(stores) == [("repeat", 1, 0, 2, 2, "a", 2)]


def test_an_earlier_leader_and_an_earlier_epoch(stores: OrderedStores) -> None:
    stores.send("a", 2, 5, [1, 2])
    stores.send("a", 2, 4, [1])
    stores.send("b", 4, 6, [1])
    stores.send("b", 3, 5, [3])
    assert faults(stores) == [("stale", 2, 4, 1, 1, "a", 2), ("stale", 3, 5, 3, 3, "b", 1)]


def test_two_groups_that_took_sends_in_one_epoch(stores: OrderedStores) -> None:
    stores.send("a", 1, 0, [1, 2])
    stores.send("b", 1, 0, [1, 3])
    assert faults(stores) == [("fork", 1, 0, 3, 3, "b", 1)]


def test_messages_without_a_mark_behind_marked_ones(stores: OrderedStores) -> None:
    stores.put("a", {})
    stores.send("a", 1, 0, [1])
    for text in ("", "1:3:0:1:2", "1:0:0:3:2", "1:0:0:1:2\n", "01:0:0:1:2"):
        stores.put("a", {"ORDERED": text} if text else {})
    assert faults(stores) == [("unmarked", None, None, place, place, "a", place) for place in range(2, 7)]


def test_plain_producers_count_queue_offsets(stores: OrderedStores) -> None:
    for offset in (4, 5, 9):
        stores.put("a", {"ORDERED": "1:0"}, queue_offset=offset)
    stores.send("a", 1, 0, [1])
    stores.put("b", {"ORDERED": "2:0"}, queue_offset=0)
    found = audit_order(read_marks(stores.write()))
    assert [(term.epoch, term.leader, term.first, term.last) for term in found.terms] == [
        (1, None, 4, 9),
        (1, 0, 1, 1),
        (2, None, 0, 0),
    ]
    assert faults(stores) == [("gap", 1, None, 6, 8, "a", 2)]


def test_queues_are_told_apart(stores: OrderedStores) -> None:
    stores.send("a", 1, 0, [1], queue=1)
    stores.send("a", 3, 0, [1], topic="Payments")
    found = audit_order(read_marks(stores.write()))
    assert [(term.topic, term.queue, term.epoch) for term in found.terms] == [("Orders", 1, 1), ("Payments", 0, 3)]


def test_a_damaged_stretch_is_named(stores: OrderedStores) -> None:
    stores.send("a", 1, 0, [1, 2, 3])
    writer = stores.writers["a"]
    writer.overwrite(writer.positions[1], b"\x00" * 8)
    marks = read_marks(stores.write())
    assert [problem.offset for problem in marks.problems] == [writer.positions[1]]
    assert [(one.kind, one.first, one.last) for one in audit_order(marks).faults] == [("gap", 2, 2)]


def test_a_directory_that_is_no_store(tmp_path: Path) -> None:
    with pytest.raises(NoStore):
        read_marks([str(tmp_path)])


def test_a_fault_says_where_it_is(stores: OrderedStores) -> None:
    stores.send("a", 1, 0, [1, 1])
    path = stores.write()[0]
    place = stores.writers["a"].positions[1]
    assert audit_order(read_marks([path])).faults == (OrderFault("Orders", 0, "repeat", 1, 0, 1, 1, path, place),)
