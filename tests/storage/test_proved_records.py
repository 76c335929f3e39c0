"""Tests of which physical offsets are records: those that a queue entry names, or that the walk over the file reaches."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.storage.appending.test_appender import plain
from tests.storage.conftest import START_MS, OpenFileStore, message, put
from tests.storage.test_retention import EMPTY, age
from tests.support.forged_records import forged_body
from twisted_mq.protocol.layouts.record_codec import decode_message
from twisted_mq.storage import proved_records


def walked(store: Any, offset: int) -> tuple[int, bytes | None]:
    """Return the number of pauses of a walk, and its result."""
    steps, walk = 0, store.walk_to_message(offset)
    while True:
        try:
            next(walk)
        except StopIteration as end:
            return steps, end.value
        steps += 1


@pytest.mark.parametrize("claimed", ["TopicA", "TopicB", "Unknown"])
@pytest.mark.parametrize("queue_offset", [0, 1, 2, -1, 1 << 62])
def test_bytes_in_a_body_are_no_record(any_store: Any, claimed: str, queue_offset: int) -> None:
    """Whichever queue and offset they claim, also those of the message that holds them."""
    put(any_store, message(), message("TopicB"))
    place, body = forged_body(any_store.max_physical_offset(), claimed, queue_offset=queue_offset)
    (holder,) = put(any_store, message(body=body))
    put(any_store, message())
    assert any_store.look_message(place) is None
    assert walked(any_store, place)[1] is None
    found = any_store.look_message(holder.physical_offset)
    assert decode_message(found).body == body
    assert walked(any_store, holder.physical_offset)[1] == found


def test_a_record_is_found_before_it_is_visible(any_store: Any) -> None:
    put(any_store, message())
    results = [any_store.put_message(message(body=body)) for body in (b"a", b"b")]
    found = [any_store.look_message(result.physical_offset) for result in results]
    assert [decode_message(one).body for one in found] == [b"a", b"b"]
    any_store.dispatch()


@pytest.mark.parametrize("queue_ids", [(0, 0, 1), (0, 1, 0), (1, 0, 0), (0, 1, 1, 0), (1, 0, 2, 0, 1)])
def test_records_put_together_for_several_queues_are_found_before_they_are_visible(
    open_store: OpenFileStore, queue_ids: tuple[int, ...]
) -> None:
    """A place inside of one is none."""
    store = open_store()
    put(store, *(message(queue_id=number) for number in range(3)))
    store.put_message(message())
    places = store.put_plain(plain(queue_ids, b"hello")).physical_offsets[: len(queue_ids)]
    store.put_message(message())
    assert [store.look_message(place) is not None for place in places] == [True] * len(queue_ids)
    assert [store.look_message(place + 1) for place in places] == [None] * len(queue_ids)
    store.dispatch()


@pytest.mark.parametrize("sys_flag", [0, 0x4], ids=["of a deleted topic", "in no queue"])
def test_a_record_without_an_entry_is_found_by_a_walk(open_store: OpenFileStore, sys_flag: int) -> None:
    store = open_store()
    long = "%RETRY%" + "G" * 200
    put(store, message(), message(long), message(topic="TopicB"))
    (wanted,) = put(store, message(body=b"wanted", sys_flag=sys_flag))
    put(store, message("TopicB"))
    store.delete_topics({"TopicA", long})
    assert store.look_message(wanted.physical_offset) is None
    found = walked(store, wanted.physical_offset)[1]
    assert found is not None
    assert decode_message(found).body == b"wanted"


def test_the_first_record_of_a_file_needs_no_entry(open_store: OpenFileStore) -> None:
    store = open_store()
    results = put(store, *[message(body=bytes(1500)) for _ in range(3)])
    store.delete_topics({"TopicA"})
    assert [store.look_message(one.physical_offset) is not None for one in results] == [True, False, True]


def test_a_later_walk_begins_where_an_earlier_one_came_to(
    open_store: OpenFileStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(proved_records, "STEP_BYTES", 500)
    store = open_store()
    results = put(store, *[message() for _ in range(30)])
    store.delete_topics({"TopicA"})
    last = results[-1].physical_offset
    assert walked(store, last)[0] == 8
    assert walked(store, last)[0] == 1
    assert walked(store, results[-2].physical_offset)[0] == 0
    assert walked(store, last + 1) == (0, None)


def test_a_walk_ends_when_its_file_expires(
    open_store: OpenFileStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(proved_records, "STEP_BYTES", 500)
    store = open_store()
    results = put(store, *[message() for _ in range(60)])
    store.delete_topics({"TopicA"})
    walk = store.walk_to_message(results[30].physical_offset)
    next(walk)
    age(tmp_path, {0: 73})
    assert store.retention.expire_log(START_MS, 4, EMPTY)
    with pytest.raises(StopIteration) as ended:
        next(walk)
    assert ended.value.value is None
