"""Holds the state that the request functions of a name server share."""

from __future__ import annotations

from collections.abc import Callable

import attrs
from twisted.internet.interfaces import IReactorTime

from twisted_mq.namesrv.kv_config import KVConfig
from twisted_mq.namesrv.list_answers import ListAnswers
from twisted_mq.namesrv.options import NamesrvOptions
from twisted_mq.namesrv.route_table import RouteTable
from twisted_mq.namesrv.route_values import MinBrokerIdChange
from twisted_mq.protocol.codes import ResponseCode
from twisted_mq.protocol.errors import BrokerError
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.protocol.wire.header_codec import encode_header
from twisted_mq.reactor_threads import InThread
from twisted_mq.remoting.channel import Answer, Channel
from twisted_mq.turns import Room, Turns

RequestFunction = Callable[["NamesrvState", Channel, RemotingCommand], Answer]


@attrs.define(eq=False, kw_only=True)
class NamesrvState:
    """Tables, settings and clock of one name server. `tell` sends a MinBrokerIdChange."""

    options: NamesrvOptions
    routes: RouteTable
    kv_config: KVConfig
    clock: IReactorTime
    turns: Turns
    in_thread: InThread
    """Runs work that waits for the disk."""
    tell: Callable[[MinBrokerIdChange], None]
    lists: ListAnswers = attrs.field(default=attrs.Factory(lambda self: ListAnswers(self.routes, self.turns), True))
    registrations: Room = attrs.field(factory=Room)
    started_at: float = 0.0
    """In seconds of the clock."""

    def now_ms(self) -> int:
        return int(self.clock.seconds() * 1000)

    def tell_if_wanted(self, change: MinBrokerIdChange | None) -> None:
        """Notify brokers of a new lowest id if notifyMinBrokerIdChanged is on."""
        if change is not None and self.options.notify_min_broker_id_changed:
            self.tell(change)


def answer(
    command: RemotingCommand, header: attrs.AttrsInstance | None = None, body: bytes = b"", remark: str | None = None
) -> RemotingCommand:
    """Return a successful answer, with a response header and a body if given."""
    fields = None if header is None else encode_header(header)
    return command.answer(ResponseCode.SUCCESS, remark, fields, body)


def check_size(command: RemotingCommand, limit: int) -> bytes:
    """Return the body. Raises BrokerError if it is longer than any body of such a request."""
    if len(command.body) > limit:
        raise refuse(f"a body of {len(command.body)} bytes, the limit is {limit}", ResponseCode.INVALID_PARAMETER)
    return command.body


def refuse(remark: str, code: ResponseCode = ResponseCode.SYSTEM_ERROR) -> BrokerError:
    """Return the error to raise for a request that is refused."""
    return BrokerError(code, remark)
