"""Compares the end of a slave's log with its master's bytes before anything is appended to it.

The offset where a log ends does not show what the log holds. A master that lost its log's end in a power cut, and then
wrote as many bytes again, ends where its slave does, with other messages. (Apache's slaves take that for their own log.)
So a slave asks for the log from its own last record on, and compares. That needs no change at the master.
"""

from __future__ import annotations

from collections.abc import Callable

from twisted_mq.protocol.layouts.ha import Transfer
from twisted_mq.storage.errors import LogMismatch, LogsDiffer
from twisted_mq.storage.interfaces import IMessageStore

LOG = "commit log"


class LogProof:
    """The proof on one connection. `start` is the offset to ask for.

    `ahead` is called with this log's end when the master's log ends before it.
    """

    def __init__(self, store: IMessageStore, start: int, ahead: Callable[[int], None]) -> None:
        self.start = start
        self._store = store
        self._position = start
        self._end = store.max_physical_offset()
        self._ahead = ahead
        self._told = False

    @property
    def is_done(self) -> bool:
        """True if the master has the bytes up to the end of this log."""
        return self._position >= self._end

    def take(self, transfer: Transfer) -> Transfer:
        """Compare a transfer; return its part beyond this log. Raises LogMismatch, LogsDiffer."""
        offset, data = transfer
        if offset != self._position:
            raise LogMismatch(LOG, self._position, offset)
        if not data:
            self._ends_before()
            return transfer
        common = min(len(data), self._end - offset)
        self._compare(data[:common])
        return Transfer(offset + common, data[common:])

    def _compare(self, theirs: memoryview) -> None:
        while theirs:
            ours = self._store.read_log(self._position, len(theirs))
            if not ours or ours != theirs[: len(ours)]:
                raise LogsDiffer(LOG, self._end, self._position)
            self._position += len(ours)
            theirs = theirs[len(ours) :]

    def _ends_before(self) -> None:
        """Note that the master has nothing more to send: report once that this log is longer, and wait for its answer."""
        if self._told:
            raise LogMismatch(LOG, self._end, self._position)
        self._told = True
        self._ahead(self._end)


def begin_proof(store: IMessageStore, most: int, ahead: Callable[[int], None]) -> LogProof:
    """Return a proof that begins at this log's last record, and not after `most`.

    It never asks for offset 0, which a master answers with its newest file.
    """
    end = store.max_physical_offset()
    start = min(store.last_record_offset(), most)
    return LogProof(store, min(max(start, 1), end), ahead)
