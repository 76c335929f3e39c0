"""Notifies the members of a group that it changed, so that they rebalance at once (code 40, one-way).

The first notices leave at once, the others in slices between the reactor's turns. Changes of a group that come before its
turn are sent as one notice, so that a flood of changes costs no more than the notices that the remaining time allows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import attrs

from twisted_mq.protocol.codes import RequestCode
from twisted_mq.protocol.headers import NotifyConsumerIdsChangedRequestHeader
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.protocol.wire.header_codec import encode_header
from twisted_mq.remoting.channel import Channel
from twisted_mq.turns import Turns, Work

NOTICES_OF_SLICE = 100
"""Notices of one slice, which takes about 3 ms."""


@attrs.define(eq=False)
class ChangeNotices:
    """Sends the notices of changed groups. `members` returns a group's members when its turn comes."""

    turns: Turns
    members: Callable[[str], Iterable[Channel]]
    _changed: dict[str, None] = attrs.field(factory=dict)
    _tells: bool = False

    def changed(self, group: str) -> None:
        """Notify a group's members, now or soon."""
        self._changed[group] = None
        if not self._tells:
            self._tells = True
            self.turns.must_run("notices", self._tell())

    def _tell(self) -> Work[None]:
        told = 0
        while self._changed:
            group = next(iter(self._changed))
            del self._changed[group]
            fields = encode_header(NotifyConsumerIdsChangedRequestHeader(consumer_group=group))
            for channel in tuple(self.members(group)):
                channel.send_one_way(RemotingCommand.request(RequestCode.NOTIFY_CONSUMER_IDS_CHANGED, fields))
                told += 1
                if not told % NOTICES_OF_SLICE:
                    yield None
        self._tells = False
