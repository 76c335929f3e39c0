"""Stores that programs measure: log files and consume queues, with the properties that Apache's client and broker set."""

from __future__ import annotations

import os
from collections import defaultdict
from pathlib import Path

import attrs

from twisted_mq.protocol.layouts.host import pack_host
from twisted_mq.protocol.layouts.queue_entry import ENTRY_BYTES, pack_entry
from twisted_mq.protocol.layouts.record_codec import encode_record
from twisted_mq.protocol.text.java import tags_code
from twisted_mq.protocol.text.properties import encode_properties

_BORN_MS = 1_795_216_734_968
_BORN_HOST, _STORE_HOST = pack_host("10.0.0.7", 49084), pack_host("10.0.0.1", 10911)
_QUEUES = 4
_TAGS = tuple(f"Tag{number}" for number in range(4))
_CODES = {tag: tags_code(tag) for tag in _TAGS}


def write_store(
    root: Path, size: int, body_bytes: int, *, topics: int = 3, step_ms: int = 1, file_bytes: int | None = None
) -> int:
    """Write about `size` bytes of log in files of about `file_bytes`, and the queues. Returns the number of messages.

    Messages are `step_ms` apart. Without `file_bytes` there is one file.
    """
    writing = _Writing(os.urandom(body_bytes), topics, step_ms)
    while writing.position < size:
        writing.write_file(root / "commitlog", min(file_bytes or size, size - writing.position))
    writing.write_queues(root / "consumequeue")
    return writing.messages


@attrs.define
class _Writing:
    """The physical offset and the number of messages so far, and the entries of each queue."""

    body: bytes
    topics: int
    step_ms: int
    position: int = 0
    messages: int = 0
    queues: defaultdict[tuple[str, int], bytearray] = attrs.field(factory=lambda: defaultdict(bytearray))

    def write_file(self, log: Path, size: int) -> None:
        """Write a file named by its first offset, whose last message ends at or after `size`."""
        log.mkdir(parents=True, exist_ok=True)
        end = self.position + size
        with open(log / f"{self.position:020d}", "wb") as file:
            while self.position < end:
                file.write(self._next())

    def _next(self) -> bytes:
        number = self.messages
        topic, queue_id, tag = f"Topic{number % self.topics}", number % _QUEUES, _TAGS[number % len(_TAGS)]
        properties = encode_properties(
            {
                "KEYS": f"order-{number}",
                "UNIQ_KEY": f"C0000202201A4E0E2F2A66E0{number:08X}",
                "CLUSTER": "DefaultCluster",
                "MSG_REGION": "DefaultRegion",
                "TRACE_ON": "true",
                "WAIT": "true",
                "TAGS": tag,
            }
        )
        entries = self.queues[topic, queue_id]
        born = _BORN_MS + number * self.step_ms
        record = encode_record(
            topic.encode(),
            self.body,
            properties.encode(),
            queue_id=queue_id,
            queue_offset=len(entries) // ENTRY_BYTES,
            physical_offset=self.position,
            born_timestamp=born,
            born_host=_BORN_HOST,
            store_timestamp=born + 2,
            store_host=_STORE_HOST,
        )
        entries += pack_entry(self.position, len(record), _CODES[tag])
        self.position += len(record)
        self.messages += 1
        return record

    def write_queues(self, root: Path) -> None:
        """Write each queue as one file."""
        for (topic, queue_id), entries in self.queues.items():
            folder = root / topic / str(queue_id)
            folder.mkdir(parents=True)
            (folder / f"{0:020d}").write_bytes(entries)
