"""Holds a master's offsets of delayed messages until the slave's table can have them.

An offset in that table says that earlier messages need no delivery, because their copies are in the log. The copies
behind the master's answer are before the end that its log has afterwards. The slave's log may be shorter, or not be part
of it. So the answer waits until all of that is on disk here, and the master has gone on over the connection on which it
answered.

A log that a master refuses because the master lost its end may be as long, and its last connection may be dead without
a sign. (5.3.3's slave uses the answer at once; if its store then becomes the group's, messages are lost.)
"""

from __future__ import annotations

import attrs

from twisted_mq.broker.ha.client import Following
from twisted_mq.protocol.bodies import DelayOffsetSerializeWrapper, KVTable
from twisted_mq.protocol.bodies.codec import decode_body
from twisted_mq.protocol.errors import BodyError
from twisted_mq.storage.tables.delay_offset_table import DelayOffsetTable

END_OF_LOG = "commitLogMaxOffset"


def end_of_log(body: bytes) -> int:
    """Return the end of the log in a broker's runtime info. Raises BodyError."""
    try:
        return int((decode_body(KVTable, body).table or {})[END_OF_LOG])
    except (KeyError, ValueError) as error:
        raise BodyError(f"KVTable.{END_OF_LOG}", f"a number is needed: {error!r}") from None


@attrs.define(eq=False)
class MasterDelays:
    """The newest answer, until `table` has it."""

    table: DelayOffsetTable
    _answer: DelayOffsetSerializeWrapper | None = None
    _end_before: int = 0
    _end_after: int = 0
    _followed: Following | None = None

    @property
    def waits(self) -> bool:
        """True if an answer is held."""
        return self._answer is not None

    def hold(self, theirs: DelayOffsetSerializeWrapper, end_before: int) -> None:
        """Hold an answer. This log ended at `end_before` when it was requested, so later deliveries are after that."""
        if theirs.offset_table == self.table.offsets:
            self._take(theirs)
        else:
            self._answer, self._end_before, self._followed = theirs, end_before, None

    def told_end(self, end_after: int, following: Following | None) -> None:
        """Set where the master's log ended after its answer."""
        self._end_after, self._followed = end_after, following

    def settle(self, following: Following | None, flushed: int) -> None:
        """Put the answer into the table if this log has what it names; drop an answer about another log."""
        answer, followed = self._answer, self._followed
        if answer is None:
            return
        if followed is None or following is None or following.link is not followed.link:
            self._answer = None
        elif following.taken > followed.taken and flushed >= self._end_after:
            self.table.offsets, self.table.log_offset = dict(answer.offset_table), self._end_before
            self._take(answer)

    def _take(self, answer: DelayOffsetSerializeWrapper) -> None:
        self.table.data_version = answer.data_version or self.table.data_version
        self.table.save()
        self._answer = None
