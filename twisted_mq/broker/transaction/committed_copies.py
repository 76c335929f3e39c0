"""Finds the half messages that were committed already, by their copies in the real queues.

A commit puts the message into its real queue at once; the operation that records it follows within
transactionOpBatchInterval. After a kill in between, the queue is the truth: a message that is there must not be asked
about, nor be committed again by a late answer. (5.3.3 asks, and delivers twice.)
"""

from __future__ import annotations

from twisted_mq.broker.places_in_log import first_behind
from twisted_mq.broker.stored_message import Place, StoredMessage
from twisted_mq.protocol.errors import RecordError
from twisted_mq.protocol.flags import MessageSysFlag
from twisted_mq.protocol.text.properties import PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX
from twisted_mq.storage.interfaces import IMessageStore

_READ_BYTES = 1 << 20
_READ_COUNT = 1000
_KIND = MessageSysFlag.TRANSACTION_ROLLBACK_TYPE
"""Both bits of a transaction's state."""


class CommittedCopies:
    """The committed copies. A queue is read from the half message that is first asked about to its end, and on at each question.

    A copy names its half message by its place in the log; if that was put again since, the unique key finds it.
    """

    def __init__(self, store: IMessageStore) -> None:
        self._store = store
        self._read: dict[Place, tuple[int, int]] = {}
        self._halves: set[int] = set()
        self._keys: set[tuple[Place, str]] = set()

    def has(self, half: StoredMessage) -> bool:
        """Return True if the half message's real queue holds it."""
        place = half.real_place
        if place is None:
            return False
        self._read_from(place, half.head.physical_offset)
        key = half.properties.get(PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX)
        return half.head.physical_offset in self._halves or (key is not None and (place, key) in self._keys)

    def _read_from(self, place: Place, physical_offset: int) -> None:
        end = self._store.max_offset_in_queue(*place)
        first = first_behind(self._store, *place, physical_offset)
        low, high = self._read.get(place, (first, first))
        self._read_range(place, first, low)
        self._read_range(place, high, end)
        self._read[place] = min(first, low), end

    def _read_range(self, place: Place, offset: int, end: int) -> None:
        while offset < end:
            result = self._store.get_message(*place, offset, min(_READ_COUNT, end - offset), _READ_BYTES, None)
            for record in result.records:
                self._note(place, record)
            if result.next_begin_offset <= offset:
                return
            offset = result.next_begin_offset

    def _note(self, place: Place, record: memoryview | bytes) -> None:
        try:
            message = StoredMessage.read(record)
        except RecordError:
            return  # readers skip damage too; what is damaged was not delivered
        if message.head.sys_flag & _KIND != MessageSysFlag.TRANSACTION_COMMIT_TYPE:
            return
        self._halves.add(message.head.prepared_transaction_offset)
        key = message.properties.get(PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX)
        if key is not None:
            self._keys.add((place, key))
