"""Promises of searches by key, for the file store and its twin in memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.storage.conftest import START_MS, SettableClock, config, message, no_sync, put
from tests.support.batches import batched
from twisted_mq.protocol.flags import MessageSysFlag
from twisted_mq.protocol.layouts.record_codec import decode_message
from twisted_mq.protocol.text.properties import encode_properties
from twisted_mq.storage.interfaces import InnerMessage, QueryResult
from twisted_mq.storage.memory.memory_store import MemoryMessageStore
from twisted_mq.storage.message_store import FileMessageStore

EVER = 1 << 62


def keyed(unique: str = "", keys: str = "", **fields: Any) -> InnerMessage:
    names = {"UNIQ_KEY": unique, "KEYS": keys}
    properties = encode_properties({name: value for name, value in names.items() if value}).encode()
    return message(properties=properties, **fields)


def bodies(result: QueryResult) -> list[bytes]:
    return [decode_message(record).body for record in result.records]


def test_messages_are_found_by_each_of_their_keys(any_store: Any) -> None:
    _, second = put(any_store, keyed("U1", "a b", body=b"one"), keyed("U2", "b", body=b"two"))
    found = {key: bodies(any_store.query_message("TopicA", key, 32, 0, EVER)) for key in ("U1", "U2", "a", "b", "a b")}
    assert found == {"U1": [b"one"], "U2": [b"two"], "a": [b"one"], "b": [b"one", b"two"], "a b": []}
    result = any_store.query_message("TopicA", "a", 32, 0, EVER)
    assert (result.index_last_update_timestamp, result.index_last_update_physical_offset) == (
        START_MS,
        second.physical_offset,
    )


def test_nothing_found_says_nothing_of_the_index(any_store: Any) -> None:
    put(any_store, keyed("U1"))
    result = any_store.query_message("TopicA", "none", 32, 0, EVER)
    assert (list(result.records), result.index_last_update_timestamp, result.index_last_update_physical_offset) == (
        [], 0, 0,
    )  # fmt: skip


def test_a_key_belongs_to_its_topic(any_store: Any) -> None:
    put(any_store, keyed(keys="k", body=b"a"), keyed(keys="k", topic="TopicB", body=b"b"))
    assert bodies(any_store.query_message("TopicB", "k", 32, 0, EVER)) == [b"b"]


def test_two_keys_with_one_hash_are_found_together(any_store: Any) -> None:
    """ "Aa" and "BB" have the same hash in Java; clients tell them apart."""
    put(any_store, keyed(keys="Aa", body=b"1"), keyed(keys="BB", body=b"2"))
    assert bodies(any_store.query_message("TopicA", "Aa", 32, 0, EVER)) == [b"1", b"2"]


def test_a_key_given_twice_is_found_twice(any_store: Any) -> None:
    """As with Apache, whose client leaves the second one out."""
    put(any_store, keyed(keys="k k"))
    assert bodies(any_store.query_message("TopicA", "k", 32, 0, EVER)) == [b"hello", b"hello"]


@pytest.mark.parametrize(("most", "count"), [(3, 3), (64, 64), (1000, 64), (0, 0), (-1, 0)])
def test_number_is_limited(any_store: Any, most: int, count: int) -> None:
    put(any_store, *[keyed(keys="k", body=b"%d" % number) for number in range(80)])
    expected = [b"%d" % number for number in range(80 - count, 80)]
    assert bodies(any_store.query_message("TopicA", "k", most, 0, EVER)) == expected


def test_times_count_in_seconds_from_the_first(any_store: Any, clock: SettableClock) -> None:
    for number in range(6):
        put(any_store, keyed(keys="k", body=b"%d" % number))
        clock.now += 700
    assert bodies(any_store.query_message("TopicA", "k", 32, START_MS + 1000, START_MS + 2000)) == [b"2", b"3", b"4"]


def test_messages_are_found_once_they_are_visible(any_store: Any) -> None:
    any_store.put_message(keyed(keys="k"))
    assert bodies(any_store.query_message("TopicA", "k", 32, 0, EVER)) == []
    any_store.dispatch()
    assert bodies(any_store.query_message("TopicA", "k", 32, 0, EVER)) == [b"hello"]


def test_batches_are_found_by_their_messages_keys(any_store: Any) -> None:
    any_store.put_messages(batched([keyed(f"U{number}", "k", body=b"%d" % number) for number in range(3)]))
    any_store.dispatch()
    assert bodies(any_store.query_message("TopicA", "U1", 32, 0, EVER)) == [b"1"]
    assert bodies(any_store.query_message("TopicA", "k", 32, 0, EVER)) == [b"0", b"1", b"2"]


def test_rolled_back_messages_are_not_found(any_store: Any) -> None:
    put(
        any_store,
        keyed(keys="k", body=b"half", sys_flag=MessageSysFlag.TRANSACTION_PREPARED_TYPE),
        keyed(keys="k", body=b"gone", sys_flag=MessageSysFlag.TRANSACTION_ROLLBACK_TYPE),
        keyed(keys="k", body=b"done", sys_flag=MessageSysFlag.TRANSACTION_COMMIT_TYPE),
    )
    assert bodies(any_store.query_message("TopicA", "k", 32, 0, EVER)) == [b"half", b"done"]


def test_nothing_waits_after_a_search(any_store: Any) -> None:
    put(any_store, keyed(keys="k"))
    any_store.query_message("TopicA", "k", 32, 0, EVER)
    assert any_store.build_index(1 << 20) is False


def test_a_masters_messages_are_found_too(any_store: Any, clock: SettableClock, tmp_path: Path) -> None:
    master = MemoryMessageStore(config(tmp_path / "master"), clock)
    master.start()
    put(master, keyed("U1", "k", body=b"one"), keyed("U2", "k", body=b"two"))
    log = b"".join(bytes(record) for record in master.query_message("TopicA", "k", 32, 0, EVER).records)
    any_store.append_log(0, log[:-5])
    assert bodies(any_store.query_message("TopicA", "k", 32, 0, EVER)) == []
    any_store.dispatch()
    assert bodies(any_store.query_message("TopicA", "k", 32, 0, EVER)) == [b"one"]
    any_store.append_log(len(log) - 5, log[-5:])
    any_store.dispatch()
    assert bodies(any_store.query_message("TopicA", "k", 32, 0, EVER)) == [b"one", b"two"]


STEPS = st.lists(
    st.tuples(st.sampled_from(["a", "b", "a b", "Aa BB", ""]), st.integers(0, 1500), st.booleans()), max_size=25
)


@settings(max_examples=40, deadline=None)
@given(STEPS, st.sampled_from(["a", "b", "Aa", "BB"]), st.integers(1, 12), st.integers(0, 9000), st.integers(0, 15_000))
def test_both_stores_find_the_same(
    tmp_path_factory: pytest.TempPathFactory, steps: list[Any], key: str, most: int, begin: int, length: int
) -> None:
    clock = SettableClock()
    settings_ = config(tmp_path_factory.mktemp("store"))
    stores = [FileMessageStore(settings_, clock, sync=no_sync), MemoryMessageStore(settings_, clock)]
    answers = []
    for store in stores:
        clock.now = START_MS
        store.start()
        for number, (keys, milliseconds, dispatched) in enumerate(steps):
            store.put_message(keyed(keys=keys, body=b"%d" % number))
            clock.now += milliseconds
            if dispatched:
                store.dispatch()
        answers.append(bodies(store.query_message("TopicA", key, most, START_MS + begin, START_MS + begin + length)))
        assert store.check() == []
        store.close()
    assert answers[0] == answers[1]
