"""Begin and end of terms in a queue, in both stores."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.store_load import small_config
from twisted_mq.broker.ordering.terms import STEP, Terms
from twisted_mq.protocol.messages.order_mark import OrderMark
from twisted_mq.storage.config import FlushDiskType, StoreConfig
from twisted_mq.storage.interfaces import InnerMessage
from twisted_mq.storage.memory.memory_store import MemoryMessageStore
from twisted_mq.storage.message_store import FileMessageStore


def put(store: Any, *epochs: int | None) -> list[int]:
    """A message of each epoch, None for one without; the log's end behind each."""
    ends = []
    for epoch in epochs:
        text = b"" if epoch is None else f"ORDERED\x01{OrderMark(epoch, 0).encode()}\x02".encode()
        ends.append(store.put_message(InnerMessage("T", 0, b"x", text, {}, 0)).end_offset)
    store.dispatch()
    return ends


def in_memory() -> MemoryMessageStore:
    store = MemoryMessageStore(StoreConfig(store_path_root_dir="/nowhere"), lambda: 1_795_217_217_000)
    store.start()
    return store


@pytest.fixture(params=["memory", "files"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    if request.param == "memory":
        return in_memory()
    made = FileMessageStore(
        small_config(tmp_path, flush_disk_type=FlushDiskType.ASYNC_FLUSH), lambda: 1_795_217_217_000
    )
    made.start()
    request.addfinalizer(made.close)
    return made


def terms(store: Any, confirmed: int | None = None) -> Terms:
    return Terms(store, lambda: store.max_physical_offset() if confirmed is None else confirmed)


def test_term_begins_with_its_first_message(store):
    put(store, 1, 1, 4, 4, 4, 9)
    found = terms(store)
    assert [found.begin("T", 0, epoch) for epoch in (1, 2, 4, 5, 9, 10)] == [0, 2, 2, 5, 5, 6]


def test_term_without_a_message_begins_at_the_queues_end_and_moves_on_with_it(store):
    found = terms(store)
    assert found.begin("T", 0, 5) == 0
    put(store, 1, 1)
    assert found.begin("T", 0, 5) == 2
    put(store, 1, 5)
    assert found.begin("T", 0, 5) == 3
    put(store, 5)
    assert found.begin("T", 0, 5) == 3


@given(st.lists(st.integers(1, 5), max_size=12), st.lists(st.integers(0, 15), max_size=5), st.integers(1, 6))
def test_messages_without_an_epoch_in_between_hide_no_message(epochs, places, wanted):
    marked: list[int | None] = [*sorted(epochs)]
    for place in places:
        marked.insert(place, None)
    store = in_memory()
    put(store, *marked)
    first = next((place for place, epoch in enumerate(marked) if epoch is not None and epoch >= wanted), len(marked))
    begin = terms(store).begin("T", 0, wanted)
    assert (begin, marked[begin:first]) == (first, [])


@pytest.mark.parametrize(
    ("offset", "epoch", "counts"),
    [(3, 4, 3), (5, 4, 5), (6, 4, 5), (9, 4, 5), (99, 4, 5), (99, 9, 6), (4, 1, 2), (2, 1, 2), (0, 1, 0), (6, 8, 5)],
)
def test_offset_of_a_term_ends_with_its_last_message(store, offset, epoch, counts):
    """Messages of a later term are in the place of those that this log lost of the term."""
    put(store, 1, 1, 4, None, 4, 9)
    assert terms(store).bounded("T", 0, offset, epoch) == counts


def test_newest_mark_is_that_of_the_last_marked_message(store):
    found = terms(store)
    assert found.newest("T", 0) == (0, 0)
    put(store, 1, 4, None)
    assert found.newest("T", 0) == (4, 0)
    put(store, None)
    assert found.newest("T", 0) == (4, 0)
    put(store, 9, None)
    assert found.newest("T", 0) == (9, 0)


def test_newest_mark_is_known_from_the_log_after_the_queues_files_are_gone(tmp_path):
    settings = small_config(tmp_path, flush_disk_type=FlushDiskType.ASYNC_FLUSH)
    store = FileMessageStore(settings, lambda: 1_795_217_217_000)
    store.start()
    put(store, 3, 5, None, 5)
    store.close()
    shutil.rmtree(tmp_path / "consumequeue")
    again = FileMessageStore(settings, lambda: 1_795_217_217_000)
    again.start()
    try:
        assert terms(again).newest("T", 0) == (5, 0)
    finally:
        again.close()


def test_stretches_count_the_messages_of_each_epoch(store):
    put(store, 1, 1, 4, None, 4, 9)
    found = terms(store)
    assert found.stretches("T", 0, 0, 6, 9) == [(1, 0, 2), (4, 2, 3), (9, 5, 1)]
    assert found.stretches("T", 0, 1, 4, 9) == [(1, 1, 1), (4, 2, 2)]
    assert found.stretches("T", 0, 0, 99, 2) == [(1, 0, 2), (4, 2, 4)]
    assert found.stretches("T", 0, 6, 6, 9) == []


def test_end_is_where_both_brokers_hold_everything(store):
    ends = put(store, *([1] * (3 * STEP)))
    for count in (0, 1, STEP - 1, STEP, STEP + 1, 2 * STEP, 3 * STEP - 1, 3 * STEP):
        confirmed = ends[count - 1] if count else 0
        assert terms(store, confirmed).end("T", 0) == count
        assert terms(store, confirmed + 1).end("T", 0) == count
