"""A slave's log in memory: does without files what twisted_mq.storage.replica.replica does with them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import attrs

from twisted_mq.protocol.errors import RecordError
from twisted_mq.protocol.flags import OUT_OF_QUEUES
from twisted_mq.protocol.layouts.record import BLANK_BYTES, MAGIC_BLANK, MAGIC_V1, MAGIC_V2, read_mark
from twisted_mq.protocol.layouts.record_codec import DispatchFields, dispatch_fields


@attrs.define(eq=False)
class MemoryReplica:
    """A master's data: the bytes of a record that is not whole yet, and whole records that are not visible yet."""

    tail: bytes = b""
    waiting: list[DispatchFields] = attrs.field(factory=list)

    def take(self, offset: int, delay_table: Mapping[int, int]) -> Iterator[bytes]:
        """Yield the records, blanks included, that are whole now; `offset` is where the tail begins. Raises RecordError."""
        while len(self.tail) >= BLANK_BYTES:
            size, magic = read_mark(self.tail)
            if size <= 0 or magic not in (MAGIC_V1, MAGIC_V2, MAGIC_BLANK):
                raise RecordError(f"no record begins here (size {size}, magic {magic})", 0)
            if len(self.tail) < size:
                return
            record, self.tail = self.tail[:size], self.tail[size:]
            if magic != MAGIC_BLANK:
                fields = dispatch_fields(record, delay_table=delay_table)
                if fields.physical_offset != offset:
                    raise RecordError(f"the record says it is at {fields.physical_offset}", 0)
                if not fields.sys_flag & OUT_OF_QUEUES:
                    self.waiting.append(fields)
            offset += size
            yield record
