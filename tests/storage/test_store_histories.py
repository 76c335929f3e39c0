"""Random histories: the file store does what its twin in memory does, and forgets nothing over restarts and crashes."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
from hypothesis import HealthCheck, settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from tests.storage.conftest import SettableClock, config, message, no_sync
from tests.storage.test_batch_queue_contract import inner_batch
from tests.support.batches import batched
from twisted_mq.protocol.boundary_type import BoundaryType
from twisted_mq.protocol.text.java import tags_code
from twisted_mq.storage.interfaces import GetResult
from twisted_mq.storage.memory.memory_store import MemoryMessageStore
from twisted_mq.storage.message_store import FileMessageStore

TOPICS = st.sampled_from(["TopicA", "TopicB", "Batches"])
QUEUES = st.integers(0, 1)
TAGS = st.sampled_from(["", "A", "B"])
BODIES = st.binary(max_size=600)


def tagged(topic: str, queue_id: int, tags: str, body: bytes, **fields: Any) -> Any:
    properties = f"TAGS\x01{tags}".encode() if tags else b""
    return message(
        topic, queue_id, body, properties=properties, property_map={"TAGS": tags}, tags_code=tags_code(tags), **fields
    )


def comparable(result: GetResult) -> tuple[Any, ...]:
    """Everything but physical offsets, which the twin counts without blank records."""
    contents = [(bytes(record[:28]), bytes(record[36:])) for record in result.records]
    return (
        result.status,
        result.next_begin_offset,
        result.min_offset,
        result.max_offset,
        result.size_bytes,
        result.message_count,
        contents,
    )


def is_batch_topic(topic: str) -> bool:
    return topic.startswith("Batches")


class StoreHistory(RuleBasedStateMachine):
    """A file store and one in memory with the same calls."""

    def __init__(self) -> None:
        super().__init__()
        self.root = Path(tempfile.mkdtemp())
        self.clock = SettableClock()
        self.memory = MemoryMessageStore(config(self.root / "none"), self.clock, is_batch_topic=is_batch_topic)
        self.memory.start()
        self.generation = 0
        self.lives = {"TopicA": 0, "TopicB": 0, "Batches": 0}
        self.store = self.open(self.root / "0")

    def open(self, root: Path) -> FileMessageStore:
        store = FileMessageStore(config(root), self.clock, is_batch_topic=is_batch_topic, sync=no_sync)
        store.start()
        return store

    def name(self, topic: str) -> str:
        """Return a name that no deleted topic had: a crash restores old queues, as in Apache."""
        return f"{topic}{self.lives[topic]}"

    @rule(topic=TOPICS, queue_id=QUEUES, tags=TAGS, body=BODIES, sys_flag=st.sampled_from([0, 0, 0, 4, 8, 12]))
    def put(self, topic: str, queue_id: int, tags: str, body: bytes, sys_flag: int) -> None:
        results = [
            store.put_message(tagged(self.name(topic), queue_id, tags, body, sys_flag=sys_flag))
            for store in (self.memory, self.store)
        ]
        assert results[0].status is results[1].status
        assert results[0].queue_offset == results[1].queue_offset

    @rule(topic=TOPICS, queue_id=QUEUES, bodies=st.lists(BODIES, min_size=1, max_size=12))
    def put_batch(self, topic: str, queue_id: int, bodies: list[bytes]) -> None:
        batch = batched([tagged(self.name(topic), queue_id, "", body) for body in bodies])
        results = [store.put_messages(batch) for store in (self.memory, self.store)]
        assert results[0].status is results[1].status
        assert (results[0].queue_offset, results[0].message_count) == (
            results[1].queue_offset,
            results[1].message_count,
        )

    @rule(topic=TOPICS, queue_id=QUEUES, bodies=st.lists(BODIES, min_size=1, max_size=6), tags=TAGS)
    def put_inner_batch(self, topic: str, queue_id: int, bodies: list[bytes], tags: str) -> None:
        """Put a record of several messages; topics of simple queues accept none."""
        inner = inner_batch(*bodies, tags=tags, topic=self.name(topic), queue_id=queue_id, tags_code=tags_code(tags))
        results = [store.put_message(inner) for store in (self.memory, self.store)]
        assert results[0].status is results[1].status
        assert (results[0].queue_offset, results[0].message_count) == (
            results[1].queue_offset,
            results[1].message_count,
        )

    @rule(milliseconds=st.integers(0, 50))
    def wait(self, milliseconds: int) -> None:
        self.clock.now += milliseconds

    @rule()
    def dispatch(self) -> None:
        self.memory.dispatch()
        self.store.dispatch()

    @rule(
        topic=TOPICS,
        queue_id=QUEUES,
        offset=st.integers(-1, 40),
        count=st.integers(1, 40),
        size=st.sampled_from([1, 500, 5000, 1 << 20]),
        wanted=st.sampled_from([None, {65}, {65, 66}, {1}]),
    )
    def pull(self, topic: str, queue_id: int, offset: int, count: int, size: int, wanted: set[int] | None) -> None:
        self.dispatch()
        results = [
            store.get_message(self.name(topic), queue_id, offset, count, size, wanted)
            for store in (self.memory, self.store)
        ]
        assert comparable(results[1]) == comparable(results[0])

    @rule(topic=TOPICS, offset=st.integers(0, 40), bits=st.integers(0, 7), wanted=st.sampled_from([None, {65}]))
    def pull_by_record(self, topic: str, offset: int, bits: int, wanted: set[int] | None) -> None:
        self.dispatch()
        results = [
            store.get_message(self.name(topic), 0, offset, 9, 1 << 20, wanted, lambda record: len(record) & 7 == bits)
            for store in (self.memory, self.store)
        ]
        assert comparable(results[1]) == comparable(results[0])

    @rule(topic=TOPICS, queue_id=QUEUES, ago=st.integers(-10, 300), boundary=st.sampled_from(BoundaryType))
    def search(self, topic: str, queue_id: int, ago: int, boundary: BoundaryType) -> None:
        when = self.clock.now - ago
        answers = [
            store.offset_by_time(self.name(topic), queue_id, when, boundary) for store in (self.memory, self.store)
        ]
        assert answers[0] == answers[1]

    @rule(topic=TOPICS)
    def delete(self, topic: str) -> None:
        self.dispatch()
        self.memory.delete_topics({self.name(topic)})
        self.store.delete_topics({self.name(topic)})
        self.lives[topic] += 1

    @rule()
    def restart(self) -> None:
        self.store.close()
        self.store.start()
        self.memory.dispatch()
        if self.memory.topics():
            assert self.store.recovery_report.actions == []
        self.delete_what_came_back()

    @rule()
    def crash(self) -> None:
        """Go on with a copy of the files as they are. The queues of deleted topics come back, as in Apache."""
        self.generation += 1
        copy = self.root / str(self.generation)
        shutil.copytree(self.store.config.store_path_root_dir, copy)
        self.store.close()
        self.store = self.open(copy)
        self.memory.dispatch()
        self.delete_what_came_back()

    def delete_what_came_back(self) -> None:
        self.store.delete_topics(set(self.store.topics()) - set(self.memory.topics()))

    @invariant()
    def ends_are_equal(self) -> None:
        for topic in self.lives:
            for queue_id in (0, 1):
                ends = [store.max_offset_in_queue(self.name(topic), queue_id) for store in (self.memory, self.store)]
                assert ends[0] == ends[1], (topic, queue_id)

    def teardown(self) -> None:
        self.dispatch()
        assert [str(problem) for problem in self.store.check()] == []
        assert self.memory.check() == []
        self.store.close()
        self.memory.close()
        shutil.rmtree(self.root)


StoreHistory.TestCase.settings = settings(
    max_examples=25,
    stateful_step_count=30,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
TestStoreHistory = StoreHistory.TestCase
