"""Compares the logs of two stores: where they differ, and which messages only one has, for a master and slave or a copy.

Both are read without their locks. Data that one side has not written yet, or that has expired there, is no difference.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import attrs

from twisted_mq.protocol.layouts.record_codec import decode_message
from twisted_mq.protocol.messages.message import MessageExt
from twisted_mq.storage.files.files_at_rest import FileAtRest
from twisted_mq.storage.store_reader import StoreReader

PIECE_BYTES = 1 << 20


@attrs.frozen
class ComparedStore:
    """A side of a comparison: begin and end of the part that both have, and its messages that the other does not have."""

    root: str
    min_offset: int
    max_offset: int
    only_here: tuple[MessageExt, ...] = ()


@attrs.frozen
class StoreDifference:
    """The result of a comparison. `first_offset` is the first differing byte; None if the logs are equal as far as both go."""

    first_offset: int | None
    record_offset: int | None
    left: ComparedStore
    right: ComparedStore

    def __bool__(self) -> bool:
        return self.first_offset is not None


class _Walk:
    """Records of one store in order, from an offset on; `current` is None after the last."""

    def __init__(self, root: str, commit_log: str | None = None) -> None:
        self.reader = StoreReader(root, commit_log)
        self.min_offset = self.max_offset = self.reader.min_offset
        self._records = self.reader.records()
        self.current: tuple[int, memoryview] | None = None

    def begin(self, offset: int) -> None:
        """Go to the first record at or after `offset`."""
        self.step()
        while self.current is not None and self.current[0] < offset:
            self.step()

    def step(self) -> None:
        self.current = next(self._records, None)
        if self.current is not None:
            self.max_offset = self.current[0] + len(self.current[1])

    def rest(self) -> Iterator[MessageExt]:
        """Yield the messages from the current one on."""
        while self.current is not None:
            yield decode_message(self.current[1], decompress=False)
            self.step()


def compare_stores(left_root: str, right_root: str) -> StoreDifference:
    """Walk both logs together, then match the messages after the first difference by their keys. Raises NoStore."""
    left, right = _Walk(left_root), _Walk(right_root)
    _skip_equal_files(left.reader, right.reader)
    start = max(left.min_offset, right.min_offset)
    for walk in (left, right):
        walk.begin(start)
    while left.current is not None and right.current is not None and left.current == right.current:
        left.step()
        right.step()
    first, record = _first_difference(left, right)
    mine, theirs = list(left.rest()), list(right.rest())
    return StoreDifference(
        first,
        record,
        ComparedStore(left_root, left.min_offset, left.max_offset, _without(mine, theirs)),
        ComparedStore(right_root, right.min_offset, right.max_offset, _without(theirs, mine)),
    )


def _skip_equal_files(left: StoreReader, right: StoreReader) -> None:
    """Drop the files before the last that have the same bytes on both sides: their records need not be read."""
    for mine, theirs in ((left, right), (right, left)):
        while len(mine.files) > 1 and mine.files[1].first_offset <= theirs.min_offset:
            del mine.files[0]
    while len(left.files) > 1 and len(right.files) > 1 and _same_file(left.files[0], right.files[0]):
        del left.files[0], right.files[0]


def _same_file(left: FileAtRest, right: FileAtRest) -> bool:
    """Compare in pieces of bytes, because views are compared byte by byte."""
    if (left.first_offset, left.size) != (right.first_offset, right.size):
        return False
    pieces = (slice(start, start + PIECE_BYTES) for start in range(0, left.size, PIECE_BYTES))
    return all(bytes(left.readable[piece]) == bytes(right.readable[piece]) for piece in pieces)


def _first_difference(left: _Walk, right: _Walk) -> tuple[int | None, int | None]:
    """Return the first differing byte and the offset of its record; if one log ends, the difference is its end."""
    ours, theirs = left.current, right.current
    if ours is None and theirs is None:
        return None, None
    if ours is None or theirs is None or ours[0] != theirs[0]:
        place = min(one[0] for one in (ours, theirs) if one is not None)
        return place, place
    same = next((n for n, (a, b) in enumerate(zip(ours[1], theirs[1], strict=False)) if a != b), None)
    return ours[0] + (min(len(ours[1]), len(theirs[1])) if same is None else same), ours[0]


def _key(message: MessageExt) -> tuple[object, ...]:
    """Return the values that identify a message in two logs, wherever it lies."""
    unique = message.unique_key or (message.born_host, message.born_timestamp, message.body_crc)
    return message.topic, message.queue_id, unique


def _without(messages: list[MessageExt], others: list[MessageExt]) -> tuple[MessageExt, ...]:
    known = Counter(_key(one) for one in others)
    found = []
    for message in messages:
        key = _key(message)
        if known[key]:
            known[key] -= 1
        else:
            found.append(message)
    return tuple(found)
