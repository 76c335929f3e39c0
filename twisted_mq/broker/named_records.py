"""Finds the stored record that a request names by its physical offset, and checks the rights on the record's own topic.

The offset is verified first: see `IMessageStore.look_message`. The topic that the request names is ignored here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from twisted.internet import defer

from twisted_mq.access.server_access import ServerAccess
from twisted_mq.broker.options import BrokerOptions
from twisted_mq.broker.stored_message import StoredMessage
from twisted_mq.logs import Logger
from twisted_mq.protocol.codes import ResponseCode
from twisted_mq.protocol.errors import BrokerError, RecordError
from twisted_mq.protocol.names.system_topics import is_brokers_own
from twisted_mq.protocol.requests.rights import Action
from twisted_mq.protocol.wire.command import ONE_WAY_FLAG, RemotingCommand
from twisted_mq.remoting.channel import Answer, Channel
from twisted_mq.storage.interfaces import IMessageStore
from twisted_mq.turns import Turns, Work, while_connected

READ = (Action.SUB, Action.GET)
"""The actions that allow an account to see a message. One of them is enough."""

Make = Callable[[bytes, StoredMessage], Answer]
"""A function that makes the answer from a record and its parts."""


class RecordParts(Protocol):
    """The parts of the broker that look up records."""

    options: BrokerOptions
    store: IMessageStore
    turns: Turns
    access: ServerAccess

    def dispatch(self) -> bool: ...


class NamedRecords:
    """Serves the requests of one broker that name a record. Only one walk through the log runs at a time."""

    log = Logger()

    def __init__(self, broker: RecordParts) -> None:
        self._broker = broker

    def answer(
        self,
        channel: Channel,
        command: RemotingCommand,
        physical_offset: int,
        make: Make,
        *,
        actions: tuple[Action, ...] = READ,
        missing: str = "can not find message by the offset",
        brokers_own: bool = False,
    ) -> Answer:
        """Return the answer of `make`, at once or after a walk has found the record. Raises or fails with BrokerError.

        The account needs one of `actions` on the record's topic. Messages of the broker's own topics need `brokers_own`.
        """

        def decide(record: bytes | None) -> Answer:
            stored = self._read(record, physical_offset)
            if record is None or stored is None:
                raise BrokerError(ResponseCode.SYSTEM_ERROR, f"{missing}, {physical_offset}")
            if not brokers_own and is_brokers_own(stored.topic):
                remark = f"offset {physical_offset}: messages of topic {stored.topic} are only for the broker"
                raise BrokerError(ResponseCode.NO_PERMISSION, remark)
            if self._broker.options.record_rights_enable:
                self._broker.access.check_topic(channel, command, actions, stored.topic)
            return make(record, stored)

        found = self._find(channel, command, physical_offset)
        if not isinstance(found, defer.Deferred):
            return decide(found)
        later: defer.Deferred[object] = found.addCallback(decide).addCallback(self._shown)
        return later  # type: ignore[return-value]  # what `decide` answers, now inside a Deferred

    def _shown(self, answer: object) -> object:
        """Make visible what was stored: an answer after a walk is not followed by the end of a socket read, which would do so."""
        self._broker.dispatch()
        return answer

    def _find(
        self, channel: Channel, command: RemotingCommand, physical_offset: int
    ) -> bytes | defer.Deferred[bytes | None] | None:
        store = self._broker.store
        record = store.look_message(physical_offset)
        if record is not None:
            return record
        walk: Work[bytes | None] = store.walk_to_message(physical_offset)
        if not command.flag & ONE_WAY_FLAG:
            walk = while_connected(channel, walk)
        return self._broker.turns.run("walk to a record", walk)

    def _read(self, record: bytes | None, physical_offset: int) -> StoredMessage | None:
        try:
            return None if record is None else StoredMessage.read(record)
        except RecordError as error:
            self.log.error("record cannot be read: offset={offset} error={e}", offset=physical_offset, e=error)
            return None
