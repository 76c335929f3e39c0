"""Writes small store directories: commit log files and consume queues, record by record, as a broker lays them out."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import attrs

from twisted_mq.protocol.layouts.host import pack_host
from twisted_mq.protocol.layouts.queue_entry import pack_entry
from twisted_mq.protocol.layouts.record import encode_blank
from twisted_mq.protocol.layouts.record_codec import encode_record
from twisted_mq.protocol.text.java import tags_code
from twisted_mq.protocol.text.properties import decode_property_bytes, encode_properties
from twisted_mq.spark.source.log_stretch import Damage, Missing, read_part
from twisted_mq.spark.source.open_log import OpenLog
from twisted_mq.spark.source.splits import StoreRange
from twisted_mq.spark.source.stores import Store, list_log_files
from twisted_mq.storage.columns.record_columns import RecordColumns

BORN_MS = 1_795_216_734_968
IPV4_BORN = pack_host("10.0.0.7", 49084)
IPV4_STORE = pack_host("10.0.0.1", 10911)
IPV6_BORN = pack_host("2001:db8::7", 49084)
IPV6_STORE = pack_host("2001:db8::1", 10911)


@attrs.define
class StoreWriter:
    """Appends records to `root`/commitlog; `positions` are the physical offsets written so far."""

    root: Path
    file_size: int = 65536
    position: int = 0
    positions: list[int] = attrs.field(factory=list)
    queue_offsets: dict[tuple[str, int], int] = attrs.field(factory=dict)
    _log: dict[int, bytearray] = attrs.field(factory=dict)
    _queues: dict[tuple[str, int], bytearray] = attrs.field(factory=dict)

    def append(
        self,
        topic: str = "Orders",
        body: bytes = b"body",
        properties: dict[str, str] | bytes = b"",
        queue_id: int = 0,
        queue_offset: int | None = None,
        born_host: bytes = IPV4_BORN,
        store_host: bytes = IPV4_STORE,
        latency_ms: int = 2,
        code: int | None = None,
        **fields: int,
    ) -> int:
        """Append a record and return its physical offset. Queue offsets count up by themselves. `code`: its entry's, else its
        tags'."""
        text = properties if isinstance(properties, bytes) else encode_properties(properties).encode()
        if queue_offset is None:
            queue_offset = self.queue_offsets.get((topic, queue_id), 0)
        self.queue_offsets[topic, queue_id] = queue_offset + 1
        born = fields.pop("born_timestamp", BORN_MS + len(self.positions))

        def record(physical_offset: int) -> bytes:
            return encode_record(
                topic.encode(),
                body,
                text,
                queue_id=queue_id,
                queue_offset=queue_offset,
                physical_offset=physical_offset,
                born_timestamp=born,
                born_host=born_host,
                store_timestamp=born + latency_ms,
                store_host=store_host,
                **fields,
            )

        self._roll_for(len(record(0)))
        data = record(self.position)
        if code is None:
            code = tags_code(decode_property_bytes(text).get("TAGS"))
        self._put(self.position, data)
        self._queues.setdefault((topic, queue_id), bytearray()).extend(pack_entry(self.position, len(data), code))
        self.positions.append(self.position)
        self.position += len(data)
        return self.positions[-1]

    def _roll_for(self, size: int) -> None:
        left = self.file_size - self.position % self.file_size
        if size + 8 > left:
            self._put(self.position, encode_blank(left))
            self.position += left

    def _put(self, physical_offset: int, data: bytes) -> None:
        first = physical_offset - physical_offset % self.file_size
        start = physical_offset - first
        if first not in self._log:
            self._log[first] = bytearray(self.file_size)
        file = self._log[first]
        file[start : start + len(data)] = data

    def overwrite(self, physical_offset: int, data: bytes) -> None:
        """Damage: other bytes in place of those written."""
        self._put(physical_offset, data)

    def write(self, queues: bool = True) -> str:
        """Puts the directory on disk, with or without its consume queues; returns its path."""
        (self.root / "commitlog").mkdir(parents=True, exist_ok=True)
        for first, content in self._log.items():
            (self.root / "commitlog" / f"{first:020d}").write_bytes(content)
        for (topic, queue_id), entries in self._queues.items() if queues else ():
            directory = self.root / "consumequeue" / topic / str(queue_id)
            directory.mkdir(parents=True, exist_ok=True)
            (directory / f"{0:020d}").write_bytes(bytes(entries) + bytes(20 * 10))
        return str(self.root)


def everything(root: str) -> Iterator[RecordColumns | Damage | Missing]:
    """All of a store's log as a task reads it, also what lies behind its last whole record."""
    files = list_log_files(Store(root))
    end = files[-1].end if files else 0
    return read_part(StoreRange(Store(root), files, 0, end, end))


def opened(root: str, number: int = 0) -> OpenLog:
    """A file of a store's log."""
    return OpenLog(Store(root), list_log_files(Store(root))[number])
