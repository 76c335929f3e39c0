"""Messages that are delivered from a queue with several terms."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.twisted_mq.broker.ordering.test_terms import in_memory, put, terms
from twisted_mq.broker.ordering.passed_over import PassedOverMessages
from twisted_mq.broker.ordering.reads import EARLIER_TERM, HandedOut
from twisted_mq.ordering.lists import Lists, Term
from twisted_mq.protocol.bodies import TopicConfig
from twisted_mq.storage.interfaces import GetStatus, InnerMessage
from twisted_mq.storage.tables.passed_over_table import PassedOverTable


def handed_out(
    epochs: tuple[int | None, ...], term: int, offset: int, most: int = 32, not_shown: int = 0, group: str = "a"
) -> tuple[list[int], int]:
    """The offsets that a group gets from there of a queue with these epochs while a term is consumed, and the next offset.

    `not_shown` more messages are in the log and wait for its flush. `group` is the one whose term it is.
    """
    store = in_memory()
    put(store, *epochs)
    for _ in range(not_shown):
        store.put_message(InnerMessage("T", 0, b"x", b"", {}, 0))
    unit = SimpleNamespace(
        topic="T", problem=None, consumer_groups={"C"}, lists=Lists(9, (), (Term(group, term), Term("a", 9)))
    )
    units: Any = SimpleNamespace(group="a", of_queue=lambda *_: unit)
    broker: Any = SimpleNamespace(store=store, consumers=None, offsets=SimpleNamespace(query=lambda *_: None))
    reads = HandedOut(broker, units, terms(store), None, None)  # type: ignore[arg-type]
    found = reads.read(TopicConfig("T"), 0, offset, "C", lambda: store.get_message("T", 0, offset, most, 1 << 20, None))
    return [offset + number for number in range(len(found.records))], found.next_begin_offset


@pytest.mark.parametrize(
    ("epochs", "offset", "expected"),
    [
        ((1, 1, 4, 4), 0, ([0, 1], 2)),
        ((1, None, 4, 4), 0, ([0, 1], 2)),
        ((1, 1, 4, None), 1, ([1], 2)),
        ((1, 1, 4, 4), 2, ([], 2)),
        ((1, 1), 0, ([0, 1], 2)),
    ],
)
def test_messages_of_a_later_term_wait_although_the_log_has_them(
    epochs: tuple[int | None, ...], offset: int, expected: tuple[list[int], int]
) -> None:
    """A slave that is cut off from the coordinator copies them before it hears that its group's term is over."""
    assert handed_out(epochs, 1, offset) == expected


@pytest.mark.parametrize("group", ["a", "b"])
@pytest.mark.parametrize(("not_shown", "expected"), [(1, ([], 3)), (0, ([], 0))])
def test_reader_that_was_at_the_slave_waits_for_what_the_master_has_not_flushed(
    not_shown: int, expected: tuple[list[int], int], group: str
) -> None:
    """The group would be sent back to its committed offset, and repeat messages. After a log that lost its end it is."""
    assert handed_out((1, 1), 1, 3, not_shown=not_shown, group=group) == expected


@pytest.mark.parametrize(
    ("offset", "committed", "rows"),
    [
        (0, 0, [(1, 0, 2), (2, 2, 1)]),
        (1, 0, [(1, 1, 1), (2, 2, 1)]),
        (0, 2, [(2, 2, 1)]),
        (0, 3, []),
        (0, None, []),
    ],
)
def test_slave_that_sends_a_reader_on_to_the_term_tells_what_its_group_passed_over(
    offset: int,
    committed: int | None,
    rows: list[tuple[int, int, int]],
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The slave uses its own copy of the committed offsets; a group without one starts with the term."""
    store = in_memory()
    put(store, 1, 1, 2, 4, 4)
    unit = SimpleNamespace(topic="T", problem=None, consumer_groups={"C"}, lists=Lists(4, (), (Term("a", 4),)))
    units: Any = SimpleNamespace(group="a", of_queue=lambda *_: unit)
    offsets = SimpleNamespace(query=lambda *_: committed)
    broker: Any = SimpleNamespace(store=store, consumers=None, offsets=offsets)
    path = tmp_path / "passed.json"
    passed_over = PassedOverMessages(PassedOverTable(str(path)), terms(store), lambda: 1_795_217_217_000)
    reads = HandedOut(broker, units, terms(store), None, passed_over)  # type: ignore[arg-type]
    for _ in range(2):
        found = reads.read(TopicConfig("T"), 0, offset, "C", lambda: pytest.fail("nothing is read below the term"))
        assert (found.status, found.next_begin_offset) == (GetStatus.OFFSET_RESET, 3)
    told = [one.getMessage() for one in caplog.records if one.levelname == "WARNING"]
    place = "messages skipped: topic=T queue=0 group=C"
    assert told == [
        f"{place} epoch={epoch} firstOffset={first} count={count} reason={EARLIER_TERM}" for epoch, first, count in rows
    ]
    read_again = PassedOverTable(str(path))
    if rows:
        read_again.load()
    assert [(one.epoch, one.first_offset, one.count) for one in read_again.passed_over] == rows
