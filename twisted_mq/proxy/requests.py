"""Requests to brokers, as they are made of headers, and their answers."""

from __future__ import annotations

import attrs

from twisted_mq.protocol.codes import ResponseCode
from twisted_mq.protocol.errors import BrokerError
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.protocol.wire.header_codec import TypedCommand


def make_request(code: int, header: attrs.AttrsInstance, body: bytes = b"") -> RemotingCommand:
    """Return a request whose header the broker of this process is handed as it is. Another broker gets it encoded."""
    return TypedCommand(code=code, body=body, header=header)


def succeeded(answer: RemotingCommand) -> None:
    """Raise BrokerError unless the broker did what it was asked to."""
    if answer.code != ResponseCode.SUCCESS:
        raise BrokerError(answer.code, answer.remark or "")
