"""Messages of one tick that the timer stores in one write: the same as those that it stores one by one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import pytest

from tests.twisted_mq.broker.schedule.test_schedule_service import places_behind, put_plain, takes
from tests.twisted_mq.broker.schedule.test_timer_service import Waiting
from twisted_mq.broker.schedule.copies_together import MOST_BYTES
from twisted_mq.protocol.layouts.timer import MAGIC_DEFAULT, MAGIC_ROLL
from twisted_mq.protocol.names.system_topics import TIMER_TOPIC
from twisted_mq.storage.interfaces import GetResult, InnerMessage, Places, PlainMessages
from twisted_mq.storage.tables.escaped_table import EscapedTable

COUNT = 7
ODD_ONE = 3
AHEAD_MS = 5500
"""Half a second after a tick begins: the clock stands at a whole second."""
LATER_MS = AHEAD_MS + 3000


def plain(waiting: Waiting, **more: Any) -> InnerMessage:
    return waiting.send(b"odd", AHEAD_MS, **more)


def recalled(waiting: Waiting) -> None:
    waiting.recall(plain(waiting))


def with_another_master(waiting: Waiting) -> None:
    """So is what was sent before it, to the same tick."""
    plain(waiting)
    end = waiting.store.max_offset_in_queue(TIMER_TOPIC, 0)
    waiting.parts["escaped"].note_ticks(tick_of(waiting), tick_of(waiting) + 1000, end, (0, 0))


def too_early(waiting: Waiting) -> None:
    """The timer's files have a message of a later tick in this one too."""
    waiting.send(b"later", LATER_MS)
    waiting.run(0)
    add_unit(waiting, MAGIC_DEFAULT, tick_of(waiting))


def lost(waiting: Waiting) -> None:
    """A unit names a place where the log has another topic's message."""
    put_plain(waiting.store)
    waiting.run(0)
    waiting.files.add(tick_of(waiting), waiting.clock.now, MAGIC_DEFAULT, 0, 100, 7)


def rolled(waiting: Waiting) -> None:
    """A unit of a later tick says that its message rolls once more, although its time has come."""
    waiting.send(b"odd", LATER_MS)
    waiting.run(0)
    add_unit(waiting, MAGIC_DEFAULT | MAGIC_ROLL, tick_of(waiting, LATER_MS))


def with_a_foreign_recall(waiting: Waiting) -> None:
    """A recall that names another topic's message has no effect, and is not delivered."""
    waiting.send(b"odd", AHEAD_MS, topic="Other", TIMER_DEL_UNIQKEY="T+K0")


def of_a_new_queue(waiting: Waiting) -> None:
    plain(waiting, queue_id=1)


def with_a_long_body(waiting: Waiting) -> None:
    waiting.send(bytes(5000), AHEAD_MS, UNIQ_KEY="K")


def with_full_properties(waiting: Waiting) -> None:
    plain(waiting, P="p" * 32_640)


def tick_of(waiting: Waiting, ahead_ms: int = AHEAD_MS) -> int:
    """Return the tick of messages that are sent now."""
    return (waiting.clock.now + ahead_ms) // 1000 * 1000


def add_unit(waiting: Waiting, magic: int, tick_ms: int) -> None:
    """Let a tick name the last message of the timer's topic."""
    offset = waiting.store.max_offset_in_queue(TIMER_TOPIC, 0) - 1
    ((at, size, _),) = waiting.store.queue_entries(TIMER_TOPIC, 0, offset, 1)
    waiting.files.add(tick_ms, waiting.clock.now, magic, at, size, 7)


@attrs.frozen
class Case:
    """A fourth message, the sizes of the writes around it, and how many copies are stored in all."""

    send: Callable[[Waiting], object]
    written: list[int]
    copies: int = COUNT


CASES = {
    "nothing": Case(plain, [COUNT]),
    "a recall": Case(recalled, [3], COUNT - 1),
    "some that another master has": Case(with_another_master, [], 3),
    "one too early": Case(too_early, [3, 3, 2], COUNT + 2),
    "one that is lost": Case(lost, [3, 3], COUNT - 1),
    "one that rolls": Case(rolled, [6], COUNT + 2),
    "a foreign recall": Case(with_a_foreign_recall, [3, 3], COUNT - 1),
    "a new queue": Case(of_a_new_queue, [3, 3]),
    "a body too long": Case(with_a_long_body, [3, 3], COUNT - 1),
    "full properties": Case(with_full_properties, [3, 3]),
}


@attrs.frozen
class Outcome:
    """Holds the records that a tick stored, how many deliveries were counted, and the timer's counts by topic."""

    records: list[bytes]
    counted: int
    waiting: dict[str, int]
    taken: dict[str, int]


def outcome(root: Path, case: Case, *, one_by_one: bool, written: list[int]) -> Outcome:
    """Deliver a tick with the case's message among others."""
    root.mkdir()
    waiting = Waiting(root)
    for topic in ("T", "Other"):
        put_plain(waiting.store, topic)
    counted: list[int] = []
    waiting.parts = {
        "escaped": EscapedTable("unused"),
        "delivered": lambda message, result: counted.append(1),
        "delivered_together": lambda places: counted.append(len(places)),
    }
    waiting.restart()
    for number in range(COUNT):
        if number == ODD_ONE:
            case.send(waiting)
        else:
            waiting.send(b"%d" % number, AHEAD_MS, topic="Other" if number == 1 else "T", TAGS="A")
            waiting.run(0)
    waiting.run(0)
    put = waiting.store.put_plain

    def put_counted(messages: PlainMessages) -> Places:
        places = put(messages)
        written.append(len(places))
        return places

    waiting.store.put_plain = (lambda messages: Places()) if one_by_one else put_counted  # type: ignore[method-assign]
    waiting.store.configure(attrs.evolve(waiting.store.config, max_message_size=4096))
    end = waiting.store.max_physical_offset()
    waiting.run(2 * AHEAD_MS / 1000)
    records = [bytes(waiting.store.look_message(at) or b"") for at in places_behind(waiting.store, end)]
    left = {topic: one.count for topic, one in waiting.files.metrics.counts.items()}
    waiting.files.close()
    return Outcome(records, sum(counted), left, dict(waiting.timer.counts.taken))


@pytest.mark.parametrize("name", CASES)
def test_copies_of_one_write_are_those_that_would_be_stored_one_by_one(tmp_path: Path, name: str) -> None:
    case = CASES[name]
    written: list[int] = []
    single = outcome(tmp_path / "single", case, one_by_one=True, written=written)
    assert written == []
    together = outcome(tmp_path / "together", case, one_by_one=False, written=written)
    assert together == single
    assert written == case.written
    assert (len(together.records), together.counted) == (case.copies, case.copies)


def test_no_write_has_a_message_that_was_delivered_before_the_start(tmp_path: Path) -> None:
    waiting = Waiting(tmp_path)
    put_plain(waiting.store)
    for number in range(COUNT):
        waiting.send(b"%d" % number, AHEAD_MS)
    waiting.run(1)
    waiting.save()
    waiting.run(10)
    waiting.restart()
    waiting.run(10)
    assert waiting.bodies() == [b"plain", *(b"%d" % number for number in range(COUNT))]


def test_a_store_that_takes_nothing_is_told_of_again_after_it_took_some(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    waiting = Waiting(tmp_path)
    put_plain(waiting.store)
    for sent in range(1, 3):
        for number in range(COUNT):
            waiting.send(b"%d" % number, AHEAD_MS)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(waiting.store, "put_plain", lambda messages: Places())
            patch.setattr(waiting.store, "put_message", takes(waiting.store.put_message, 0))
            waiting.run(10)
        told = [one for one in caplog.records if "timed message not accepted by the store" in one.message]
        assert (len(told), len(waiting.bodies())) == (sent, 1 + (sent - 1) * COUNT)
        waiting.run(1)
    assert len(waiting.bodies()) == 1 + 2 * COUNT


def nothing(waiting: Waiting) -> None:
    """Nothing is sent."""


def foreign(waiting: Waiting) -> None:
    """A message without a time, which gets no unit."""
    put_plain(waiting.store, TIMER_TOPIC)


def of_a_later_tick(waiting: Waiting) -> None:
    waiting.send(b"later", LATER_MS, topic="Other")


@pytest.mark.parametrize(("between", "looks", "reads"), [(nothing, 1, 1), (foreign, 4, 1), (of_a_later_tick, COUNT, 0)])
def test_messages_whose_units_follow_each_other_are_read_together(
    tmp_path: Path, between: Callable[[Waiting], object], looks: int, reads: int
) -> None:
    """The read behind the first brings six, three of them foreign. So the last three are looked at one by one."""
    waiting = Waiting(tmp_path)
    put_plain(waiting.store)
    put_plain(waiting.store, "Other")
    for number in range(COUNT):
        waiting.send(b"%d" % number, AHEAD_MS)
        between(waiting)
    waiting.run(0)
    waiting.options.timer_stop_enqueue = True
    waiting.clock.now = tick_of(waiting) + 1000
    asked: list[str] = []
    look, get = waiting.store.look_message, waiting.store.get_message

    def look_counted(offset: int) -> bytes | None:
        asked.append("look")
        return look(offset)

    def get_counted(topic: str, queue_id: int, offset: int, count: int, *more: Any) -> GetResult:
        asked.append("get")
        assert offset < waiting.store.max_offset_in_queue(TIMER_TOPIC, 0)
        return get(topic, queue_id, offset, count, *more)

    waiting.store.look_message = look_counted  # type: ignore[method-assign]
    waiting.store.get_message = get_counted  # type: ignore[method-assign, assignment]
    waiting.timer.turn()
    waiting.store.get_message = get  # type: ignore[method-assign]
    waiting.store.dispatch()
    assert (asked.count("look"), asked.count("get")) == (looks, reads)
    assert waiting.bodies() == [b"plain", *(b"%d" % number for number in range(COUNT))]


def test_a_write_has_no_more_bytes_than_its_limit(tmp_path: Path) -> None:
    waiting = Waiting(tmp_path)
    put_plain(waiting.store)
    bodies = [bytes([number]) * (MOST_BYTES * 2 // 5) for number in range(5)]
    for number, body in enumerate(bodies):
        waiting.send(body, AHEAD_MS, UNIQ_KEY=f"K{number}")
    put, written = waiting.store.put_plain, list[int]()

    def put_counted(messages: PlainMessages) -> Places:
        places = put(messages)
        written.append(len(places))
        return places

    waiting.store.put_plain = put_counted  # type: ignore[method-assign]
    waiting.run(10)
    assert written == [2, 2]
    assert waiting.bodies() == [b"plain", *bodies]
