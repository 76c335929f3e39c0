"""Keeps the state of one queue of half messages: which of them are over, and which later ones replace earlier ones.

Pure. Numbers are queue offsets: `half` ones of the half topic, `op` ones of the operations' topic, whose messages list
half offsets that are over ("7,9,12,"). Apache reads the operations again at each check; here they are kept in memory
until the check has passed the half messages.
"""

from __future__ import annotations

from collections.abc import Iterable

import attrs

NOT_WRITTEN = -1
"""Used as the op offset of a half message that is over but not in an operation on disk yet."""


@attrs.frozen
class _Over:
    """A half message that is over: the operation that says so, and the half queue's end when it was read."""

    op_offset: int
    half_end: int


@attrs.define(eq=False)
class HalfQueue:
    """A queue of half messages. `half_offset` is the first one that the check has not passed, `op_offset` the first
    operation not read.
    """

    queue_id: int
    half_offset: int
    op_offset: int
    _over: dict[int, _Over] = attrs.field(factory=dict)
    _open_operations: dict[int, int] = attrs.field(factory=dict)
    _newest: dict[int, int] = attrs.field(factory=dict)
    _earlier: dict[int, list[int]] = attrs.field(factory=dict)

    # what producers decide

    def newest(self, half: int) -> int:
        """Return the half message that replaces this one now; itself if it was not renewed."""
        return self._newest.get(half, half)

    def is_over(self, half: int) -> bool:
        """Return True if a decision is known and the check has not passed it yet."""
        return self.newest(half) in self._over

    def was_passed(self, half: int) -> bool:
        """Return True if the check passed a message and its replacement, so that a decision about it is forgotten."""
        return self.newest(half) < self.half_offset

    def end(self, half: int) -> int:
        """Record a decision before it is written; return the offset to write."""
        newest = self.newest(half)
        self._over[newest] = _Over(NOT_WRITTEN, newest)
        return newest

    # the operations

    def read_operation(self, op_offset: int, halves: Iterable[int], half_end: int) -> None:
        """Store one operation; `half_end` is the offset after the half queue's last message."""
        listed = set(halves)
        for half in listed:
            self._forget_operation(self._over.get(half))
            self._over[half] = _Over(op_offset, half_end)
        if listed:
            self._open_operations[op_offset] = len(listed)
        self.op_offset = op_offset + 1

    @property
    def done_op_offset(self) -> int:
        """Return the first operation that is still needed; a restart reads again from there on."""
        return next(iter(self._open_operations), self.op_offset)

    # the check

    def pass_over(self, half: int, first: int | None = None) -> bool:
        """Return True if a message is over, and forget it then. `first` is the offset it had before it was renewed."""
        known = [offset for offset in (half, first) if offset in self._over]
        for offset in known:
            assert offset is not None
            self._forget_operation(self._over.pop(offset))
        if known:
            self.resolve(half)
        return bool(known)

    def renew(self, half: int, later: int) -> None:
        """Record that a message was put again at the queue's end: decisions about it are about the later one from now on."""
        earlier = [*self._earlier.pop(half, []), half]
        self._newest.update(dict.fromkeys(earlier, later))
        self._earlier[later] = earlier

    def resolve(self, half: int) -> None:
        """Forget what a message replaced, because it is settled."""
        for offset in self._earlier.pop(half, []):
            del self._newest[offset]

    def forget_passed(self) -> None:
        """Forget decisions that no message can need any more, now that the check has come to `half_offset`.

        A decision about a message before that offset may be about a renewed one that was put before a restart and is
        after it. It is kept until the check has passed all messages that existed when it was read.
        """
        half_offset = self.half_offset
        gone = [
            half
            for half, over in self._over.items()
            if half < half_offset and over.half_end <= half_offset and over.op_offset != NOT_WRITTEN
        ]
        for half in gone:
            self._forget_operation(self._over.pop(half))

    def _forget_operation(self, over: _Over | None) -> None:
        if over is None or over.op_offset == NOT_WRITTEN:
            return
        left = self._open_operations.get(over.op_offset, 0) - 1
        if left > 0:
            self._open_operations[over.op_offset] = left
        else:
            self._open_operations.pop(over.op_offset, None)
