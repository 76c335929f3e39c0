"""Keeps encoded lists of topics until the table changes, because they are long and often requested."""

from __future__ import annotations

from collections.abc import Callable, Generator

import attrs
from twisted.internet import defer

from twisted_mq.namesrv.by_topic import TOPICS_OF_SLICE
from twisted_mq.namesrv.route_query import Names
from twisted_mq.namesrv.route_table import RouteTable
from twisted_mq.protocol.bodies import TopicList, encode_body
from twisted_mq.protocol.codes import ResponseCode
from twisted_mq.protocol.errors import BrokerError
from twisted_mq.protocol.text.fastjson import dumps
from twisted_mq.protocol.wire.framing import MAX_FRAME_BYTES
from twisted_mq.turns import Turns

MAX_BODY_BYTES = MAX_FRAME_BYTES - 64 * 1024
"""The longest body: no client reads a larger frame."""
KEPT = 8
"""The number of kept lists: those of the clusters that were requested last, and of units."""


@attrs.define(eq=False)
class ListAnswers:
    """Encoded lists, made in slices. Requests that come meanwhile wait for the same list."""

    _routes: RouteTable
    _turns: Turns
    _kept: dict[str, tuple[int, bytes]] = attrs.field(factory=dict)
    """List -> version of the table and body."""

    def body(self, name: str, names: Callable[[RouteTable], Names]) -> bytes | defer.Deferred[bytes]:
        """Return a TopicList. Raises, or fails with, BrokerError if it is too long for a frame."""
        return self._turns.run(("list", name), self._made(name, names))

    def _made(self, name: str, names: Callable[[RouteTable], Names]) -> Generator[None, None, bytes]:
        version = self._routes.version
        known = self._kept.pop(name, None)
        if known is None or known[0] != version:
            known = version, (yield from _encoded((yield from names(self._routes))))
        self._kept[name] = known
        if len(self._kept) > KEPT:
            del self._kept[next(iter(self._kept))]
        if len(known[1]) > MAX_BODY_BYTES:
            raise BrokerError(ResponseCode.SYSTEM_ERROR, f"a list of {len(known[1])} bytes, more than fit in a frame")
        return known[1]


def _encoded(names: list[str]) -> Generator[None, None, bytes]:
    """Encode as encode_body(TopicList(topic_list=names)) does."""
    pieces: list[bytes] = []
    for start in range(0, len(names), TOPICS_OF_SLICE):
        if start:
            yield
        pieces.append(dumps(names[start : start + TOPICS_OF_SLICE])[1:-1])
    return encode_body(TopicList()).replace(b"[]", b"[" + b",".join(pieces) + b"]")
