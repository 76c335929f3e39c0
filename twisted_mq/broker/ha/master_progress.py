"""Holds how far a master came until its slave's tables can have it.

That is the offsets of delayed messages and of the broker's own groups. Such an offset says that earlier messages need
nothing more, because what came of them is in the log. For delayed messages that is their copies. For half messages
(CID_RMQ_SYS_TRANS) it is the committed copies, the operations, and what was put again. For popped messages
(CID_RMQ_SYS_REVIVE_GROUP) it is the copies that come again.

All that is before the end that the master's log has after the answer. The slave's log may be shorter, or not be part of
it. So the answer waits until all of that is on disk here, and the master has gone on over the connection on which it
answered.

A log that a master refuses because the master lost its end may be as long, and its last connection may be dead without
a sign. (5.3.3's slave uses the answer at once; if its store then becomes the group's, messages are lost.)
"""

from __future__ import annotations

import attrs

from twisted_mq.broker.clients.consumer_offset_manager import ConsumerOffsetManager, Offsets
from twisted_mq.broker.ha.client import Following
from twisted_mq.protocol.bodies import DelayOffsetSerializeWrapper, KVTable
from twisted_mq.protocol.bodies.codec import decode_body
from twisted_mq.protocol.errors import BodyError
from twisted_mq.storage.tables.small_tables import DelayOffsetTable

END_OF_LOG = "commitLogMaxOffset"


def end_of_log(body: bytes) -> int:
    """Return the end of the log in a broker's runtime info. Raises BodyError."""
    try:
        return int((decode_body(KVTable, body).table or {})[END_OF_LOG])
    except (KeyError, ValueError) as error:
        raise BodyError(f"KVTable.{END_OF_LOG}", f"a number is needed: {error!r}") from None


@attrs.define(eq=False)
class MasterProgress:
    """The newest answers, until `table` and `offsets` have them."""

    table: DelayOffsetTable
    offsets: ConsumerOffsetManager
    _answer: DelayOffsetSerializeWrapper | None = None
    _own: Offsets = attrs.field(factory=dict)
    _end_before: int = 0
    _end_after: int = 0
    _followed: Following | None = None

    @property
    def waits(self) -> bool:
        """True if answers are held."""
        return self._answer is not None

    def hold(self, theirs: DelayOffsetSerializeWrapper, own: Offsets, end_before: int) -> None:
        """Hold answers; `own` are the offsets of the master's own groups. This log ended at `end_before` when the offsets of
        delayed messages were requested, so later deliveries are after that.
        """
        self._answer, self._own, self._end_before, self._followed = theirs, own, end_before, None
        if theirs.offset_table == self.table.offsets and self._has(own):
            self._take(theirs)

    def _has(self, own: Offsets) -> bool:
        return all(self.offsets.offsets.get(key) == queues for key, queues in own.items())

    def told_end(self, end_after: int, following: Following | None, *, with_own: bool) -> None:
        """Set where the master's log ended after its answers. Without `with_own`, the own groups' offsets may be those of an
        earlier master, and are let go of.
        """
        self._end_after, self._followed = end_after, following
        if not with_own:
            self._own = {}

    def settle(self, following: Following | None, flushed: int) -> Offsets:
        """Put the answers into the tables if this log has what they name; drop answers about another log.

        Returns the own groups' offsets that were put there.
        """
        answer, followed = self._answer, self._followed
        if answer is None:
            return {}
        if followed is None or following is None or following.link is not followed.link:
            self._answer = None
        elif following.taken > followed.taken and flushed >= self._end_after:
            self.table.offsets, self.table.log_offset = dict(answer.offset_table), self._end_before
            self._take(answer)
            self.offsets.merge(self._own, None)
            return self._own
        return {}

    def _take(self, answer: DelayOffsetSerializeWrapper) -> None:
        self.table.data_version = answer.data_version or self.table.data_version
        self.table.save()
        self._answer = None
