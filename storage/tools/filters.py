"""Selects messages of a log; whole batches are filtered before any message is decoded."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator

import attrs
import numpy as np
import numpy.typing as npt

from twisted_mq.protocol.errors import RecordError
from twisted_mq.protocol.layouts.record_codec import decode_message
from twisted_mq.protocol.messages.message import MessageExt
from twisted_mq.storage.columns.contents import Names
from twisted_mq.storage.columns.record_columns import RecordColumns
from twisted_mq.storage.columns.walk import Gap, LogFiles, walk_log
from twisted_mq.storage.tools.findings import StoreFinding
from twisted_mq.storage.tools.verify import gap_finding

_NEVER = 1 << 62
Advance = Callable[[int], None]


@attrs.frozen
class RecordFilter:
    """Conditions that a message must all meet. Ranges include their first value and exclude their last; times are in ms.

    `keys` are keys, unique keys, or offset message ids: a message with any of them is selected.
    """

    topics: Collection[str] = ()
    queue_ids: Collection[int] = ()
    keys: Collection[str] = ()
    stored_from: int = 0
    stored_until: int = _NEVER
    offset_from: int = 0
    offset_until: int = _NEVER
    queue_offset_from: int = 0
    queue_offset_until: int = _NEVER

    def rows(self, batch: RecordColumns, names: Names) -> npt.NDArray[np.int64]:
        """Return the rows of a batch that may be selected; only keys are not checked exactly."""
        places = batch.physical_offsets
        taken = (places >= self.offset_from) & (places < self.offset_until)
        taken &= (batch.store_timestamp >= self.stored_from) & (batch.store_timestamp < self.stored_until)
        taken &= (batch.queue_offset >= self.queue_offset_from) & (batch.queue_offset < self.queue_offset_until)
        if self.queue_ids:
            taken &= np.isin(batch.queue_id, list(self.queue_ids))
        if self.topics and taken.any():
            numbers = names.numbers_of(batch)
            taken &= np.isin(numbers, [names[topic.encode()] for topic in self.topics])
        return np.flatnonzero(taken)

    def may_have_key(self, properties: bytes) -> bool:
        """Return whether a record's properties contain one of the keys as text; offset message ids are not among them."""
        return not self.keys or any(key.encode() in properties for key in self.keys)

    def has_key(self, message: MessageExt) -> bool:
        """Return whether the message has one of the keys."""
        return not self.keys or any(
            key in message.keys or key in (message.unique_key, message.msg_id) for key in self.keys
        )


@attrs.define
class SelectedMessages:
    """The messages of a log that a filter selects, in order; afterwards `problems` names what could not be read."""

    files: LogFiles
    wanted: RecordFilter
    advance: Advance = lambda amount: None
    problems: list[StoreFinding] = attrs.field(factory=list)
    decompress: bool = True

    def __iter__(self) -> Iterator[MessageExt]:
        names = Names()
        for part in walk_log(self.files, start=self.wanted.offset_from):
            if isinstance(part, Gap):
                if part.end > self.wanted.offset_from and part.physical_offset < self.wanted.offset_until:
                    self.problems.append(gap_finding(part))
                self.advance(part.length)
                continue
            if int(part.physical_offsets[0]) >= self.wanted.offset_until:
                return
            yield from self._messages(part, names)
            self.advance(int(part.sizes.sum()))

    def _messages(self, batch: RecordColumns, names: Names) -> Iterator[MessageExt]:
        ids = any(len(key) in (32, 56) for key in self.wanted.keys)
        for row in self.wanted.rows(batch, names).tolist():
            properties = batch.log.data[int(batch.properties[row]) : int(batch.ends[row])]
            if not ids and not self.wanted.may_have_key(properties):
                continue
            try:
                message = decode_message(batch.log.data, int(batch.starts[row]), decompress=self.decompress)
            except RecordError as error:
                place = int(batch.physical_offsets[row])
                self.problems.append(StoreFinding("log", batch.log.path, place, error.reason))
                continue
            if self.wanted.has_key(message):
                yield message
