"""A closed store with small files for the tools, and ways to damage it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import attrs
import pytest

from tests.storage.conftest import LOG_FILE_BYTES, OpenFileStore, config, message, no_sync, put, tagged
from twisted_mq.storage.check import check_store
from twisted_mq.storage.message_store import FileMessageStore
from twisted_mq.storage.store_reader import StoreReader

MESSAGES = 50
BODY_BYTES = 100


@attrs.frozen
class ClosedStore:
    """A store's directory; `bodies` of all messages in the order of the log, each 100 equal bytes."""

    root: Path

    @property
    def log(self) -> Path:
        return self.root / "commitlog"

    def log_file(self, number: int) -> Path:
        return self.log / f"{number * LOG_FILE_BYTES:020d}"

    def queue_file(self, topic: str, queue_id: int, first_byte: int = 0) -> Path:
        return self.root / "consumequeue" / topic / str(queue_id) / f"{first_byte:020d}"

    def overwrite(self, path: Path, position: int, data: bytes) -> None:
        with path.open("r+b") as file:
            file.seek(position)
            file.write(data)

    def insert(self, path: Path, position: int, data: bytes, *, keep_size: bool) -> None:
        """Foreign bytes between the others; the file grows, or loses as many at its end."""
        content = path.read_bytes()
        changed = content[:position] + data + content[position:]
        path.write_bytes(changed[: len(content)] if keep_size else changed)

    def record_at(self, number: int) -> tuple[int, int]:
        """(physical offset, size) of the n-th message."""
        offset, record = list(StoreReader(str(self.root)).records())[number]
        return offset, len(record)

    def bodies(self) -> list[int]:
        """The number in each message that queues lead to, as a broker's store serves them.

        The follower of a lost message is served once more in its place.
        """
        store = FileMessageStore(config(self.root), lambda: 0, sync=no_sync)
        store.start()
        try:
            assert [str(one) for one in store.check()] == []
            assert [str(one) for one in store.recovery_report.actions] == []
            found = []
            for topic in store.topics():
                for queue_id in store.queue_ids(topic):
                    found += [record.body[0] for record in _read(store, topic, queue_id)]
            return sorted(set(found))
        finally:
            store.close()

    def problems(self) -> list[str]:
        """Return the findings of check_store."""
        return [str(one) for one in check_store(str(self.root))]

    def state(self) -> dict[str, bytes]:
        """Every file's bytes."""
        return {str(path): path.read_bytes() for path in sorted(self.root.rglob("*")) if path.is_file()}


def _read(store: FileMessageStore, topic: str, queue_id: int) -> Iterator[object]:
    from twisted_mq.protocol.layouts.record_codec import decode_message

    offset = store.min_offset_in_queue(topic, queue_id)
    while offset < store.max_offset_in_queue(topic, queue_id):
        found = store.get_message(topic, queue_id, offset, 32, 1 << 20, None)
        yield from (decode_message(record) for record in found.records)
        assert found.next_begin_offset > offset
        offset = found.next_begin_offset


MakeStore = Callable[[], ClosedStore]


@pytest.fixture
def closed(open_store: OpenFileStore, tmp_path: Path) -> ClosedStore:
    """50 messages in three log files, over two topics of two queues each; a third of them with tags."""
    store = open_store()
    for number in range(MESSAGES):
        topic, queue_id, body = ("TopicA", "TopicBB")[number % 2], number // 2 % 2, bytes([number]) * BODY_BYTES
        one = tagged("TagA", 2598919, topic=topic, queue_id=queue_id, body=body) if number % 3 == 0 else None
        put(store, one or message(topic, queue_id, body))
    assert store.check() == []
    store.close()
    return ClosedStore(tmp_path / "store")
