"""Checks that the fields of a signed request belong to its code: the signature does not cover the code.

An attacker who has seen a signed request can send it again under another code. The request is refused if it carries a
field that other codes define and its own code does not, or a body although its code defines none. A field that no request
of 5.3.3 defines is accepted: newer clients may send it. Two codes with the same fields cannot be told apart;
docs/how-to/secure.md lists them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

from twisted_mq.protocol import requests
from twisted_mq.protocol.codes import RequestCode, ResponseCode
from twisted_mq.protocol.errors import BrokerError
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.protocol.wire.header_fields import wire_fields
from twisted_mq.protocol.wire.signature import ACCESS_KEY

COMMON = frozenset({"ns", "nsd", "bname", "oway", "lo"})
"""The fields that any request may have (Apache: RpcRequestHeader, TopicRequestHeader)."""


@functools.cache
def own_fields(code: int) -> frozenset[str]:
    """Return the names of the fields that a request of this code may have."""
    header = requests.REQUESTS[RequestCode(code)].request_header
    return COMMON if header is None else COMMON.union(field.wire for field in wire_fields(header))


@functools.cache
def _all_fields() -> frozenset[str]:
    return frozenset().union(*map(own_fields, requests.REQUESTS))


@functools.cache
def fit(code: int) -> Callable[[RemotingCommand], None]:
    """Return a check that raises BrokerError (NO_PERMISSION) for a signed request that was made for another code."""
    foreign, has_body = _all_fields() - own_fields(code), requests.REQUESTS[RequestCode(code)].request_body is not None

    def check(command: RemotingCommand) -> None:
        fields = command.ext_fields
        if foreign.isdisjoint(fields) and (has_body or not command.body):
            return
        if ACCESS_KEY not in fields:
            return
        found = sorted(foreign.intersection(fields))
        wrong = f"field {found[0]}" if found else f"a body of {len(command.body)} bytes"
        raise BrokerError(
            ResponseCode.NO_PERMISSION, f"check signature failed. {wrong} does not belong to a request with code {code}"
        )

    return check
