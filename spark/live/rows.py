"""Arrow batches of pulled records, by the same columnar decoder that reads stores."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import attrs
import numpy as np
import pyarrow as pa

from twisted_mq.protocol.columns import Mask
from twisted_mq.protocol.messages.subscription import is_tag_type, split_tags
from twisted_mq.spark.columns.makers import Origin, record_batches
from twisted_mq.spark.columns.selection import MessageConditions
from twisted_mq.spark.live.errors import LiveError
from twisted_mq.spark.live.pulling import PullSelection, Stretch
from twisted_mq.storage.columns.chain import chained
from twisted_mq.storage.columns.record_columns import RecordColumns, intact_records
from twisted_mq.storage.files.mapped_log import LogBytes

BATCH_BYTES = 4 << 20
"""Approximate number of bytes that are decoded at once, as one batch."""
_OFFSET = "queueOffset"


@attrs.define
class RowMaker:
    """Rows of one stretch. Repeated messages are dropped: offsets ascend."""

    stretch: Stretch
    columns: Sequence[str]
    selection: PullSelection
    _next_offset: int = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._next_offset = self.stretch.start

    def batches(self, bodies: Iterable[bytes]) -> Iterator[pa.RecordBatch]:
        """Return batches from answers to pulls. Raises LiveError for bytes that are not records."""
        origin = Origin(broker_name=self.stretch.queue.broker_name)
        for data in _joined(bodies):
            yield from self.rows(self._decoded(data), origin)

    def rows(self, records: RecordColumns, origin: Origin) -> Iterator[pa.RecordBatch]:
        """Return batches from records in the queue's order."""
        names = [*self.columns, *({_OFFSET} - set(self.columns))]
        for batch in record_batches(records, names, _exact_tags(self.selection), origin):
            offsets = np.asarray(batch[_OFFSET])
            kept = self._new(offsets)
            rows = batch if kept.all() else batch.filter(pa.array(kept))
            if rows.num_rows:
                yield rows.select(list(self.columns))

    def _decoded(self, data: bytes) -> RecordColumns:
        log = LogBytes(data, "", 0)
        records = intact_records(log, chained(log, 0, log.size), in_place=False)
        read = int(records.ends[-1]) if len(records) else 0
        if read < log.size:
            raise LiveError(
                f"{self.stretch}: {log.size - read} bytes of an answer are not records: {log.fault_at(read)}"
            )
        return records

    def _new(self, offsets: np.ndarray) -> Mask:
        """Return the records in the stretch with offsets after all earlier ones."""
        before = np.maximum.accumulate(np.append(self._next_offset - 1, offsets))
        self._next_offset = int(before[-1]) + 1
        new: Mask = (offsets > before[:-1]) & (offsets < self.stretch.end)
        return new


def _joined(bodies: Iterable[bytes]) -> Iterator[bytes]:
    """Join bodies up to BATCH_BYTES, or one body more."""
    held: list[bytes] = []
    size = 0
    for body in bodies:
        held.append(body)
        size += len(body)
        if size >= BATCH_BYTES:
            yield b"".join(held)
            held, size = [], 0
    if held:
        yield b"".join(held)


def _exact_tags(selection: PullSelection) -> MessageConditions:
    """Select by exact tags; brokers compare only hashes of tags."""
    if selection.selects_all or not is_tag_type(selection.kind):
        return MessageConditions()
    return MessageConditions(tags=tuple(split_tags(selection.expression)))
