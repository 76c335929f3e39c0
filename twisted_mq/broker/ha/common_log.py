"""Finds how far the logs of a master and of its slave are the same.

A queue offset that was committed at a slave counts messages of the slave's log. A master that lost its log's end, and has
appended since, has other messages at those offsets, also after further starts. A log only grows at its end, so two logs
with the same message at one place are the same up to there. The peer is asked for its message at a place of this log
(VIEW_MESSAGE_BY_ID, which Apache's brokers answer, too).
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from twisted_mq.protocol.codes import RequestCode
from twisted_mq.protocol.headers import ViewMessageRequestHeader
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.protocol.wire.header_codec import encode_header
from twisted_mq.remoting.channel import Invoke
from twisted_mq.storage.interfaces import IMessageStore

ASK_SECONDS = 3.0
NOWHERE = -1
"""The place of a message that a log does not have any more."""


@attrs.frozen(eq=False)
class CommonLog:
    """This broker's log and that of a peer at `address`, host:port."""

    store: IMessageStore
    invoke: Invoke
    address: str

    async def has(self, physical_offset: int) -> bool:
        """Return whether both logs have the same message there. Raises RemotingError."""
        mine = self.store.look_message(physical_offset)
        if mine is None:
            return False
        header = encode_header(ViewMessageRequestHeader(offset=physical_offset))
        command = RemotingCommand.request(RequestCode.VIEW_MESSAGE_BY_ID, header)
        answer = await self.invoke(self.address, command, ASK_SECONDS)
        return answer.code == 0 and answer.body == mine

    async def last(self, places: Sequence[int]) -> int:
        """Return the last of these places, which ascend, at which both logs have the same message; NOWHERE without one.

        Asks once if it is the very last, else as often as a search by halves does. Raises RemotingError.
        """
        low, high, middle = 0, len(places), len(places) - 1
        while low < high:
            if await self.has(places[middle]):
                low = middle + 1
            else:
                high = middle
            middle = (low + high) // 2
        return places[low - 1] if low else NOWHERE


def place_before(store: IMessageStore, topic: str, queue_id: int, offset: int) -> int:
    """Return the physical offset of the message before a queue offset; NOWHERE if this log does not have it."""
    entries = store.queue_entries(topic, queue_id, offset - 1, 1) if offset > 0 else []
    return entries[0][0] if entries else NOWHERE


@attrs.frozen
class QueuePlaces(Sequence[int]):
    """The places of a queue's messages from queue offset `low` up to and without `high`, each looked up when asked for."""

    store: IMessageStore
    topic: str
    queue_id: int
    low: int
    high: int

    def __len__(self) -> int:
        return max(0, self.high - self.low)

    def __getitem__(self, index: int) -> int:  # type: ignore[override]  # no slices
        return place_before(self.store, self.topic, self.queue_id, self.low + index + 1)
