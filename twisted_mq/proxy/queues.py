"""Selects queues of a route for messages, and describes queues to clients."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import attrs

from twisted_mq.protocol.bodies import BrokerData, QueueData, TopicRouteData
from twisted_mq.protocol.flags import PermName
from twisted_mq.protocol.messages.message_type import PRIORITY
from twisted_mq.protocol.names.routes import MASTER_ID
from twisted_mq.protocol.text.java import java_hash
from twisted_mq.proxy.messages import Address, AddressScheme, Endpoints, MessageType, Permission

MIXED = "MIXED"
ALL_TYPES = ("NORMAL", "FIFO", "DELAY", "TRANSACTION")
"""The types that a topic of mixed messages accepts."""
_MASK = (1 << 64) - 1
_MULTIPLIER = 2862933555777941757


@attrs.define
class Turn:
    """Counts the messages that took the queues of their topics in turn."""

    count: int = 0

    def take(self) -> int:
        """Return the number of this message."""
        number = self.count
        self.count += 1
        return number


def consistent_hash(text: str, buckets: int) -> int:
    """Return the bucket of a text, the same as Guava's Hashing.consistentHash of the text's Java hash code."""
    state, candidate = java_hash(text) & _MASK, 0
    while True:
        state = (_MULTIPLIER * state + 1) & _MASK
        following = int((candidate + 1) / (((state >> 33) + 1) / 0x80000000))
        if not 0 <= following < buckets:
            return candidate
        candidate = following


def broker_queues(route: TopicRouteData) -> Iterator[tuple[BrokerData, QueueData]]:
    """Yield the brokers with their queues, ordered by broker name."""
    brokers = {one.broker_name: one for one in route.broker_datas}
    for queues in sorted(route.queue_datas, key=lambda one: one.broker_name):
        broker = brokers.get(queues.broker_name)
        if broker is not None:
            yield broker, queues


def writable(route: TopicRouteData) -> list[tuple[str, int]]:
    """Return broker name and queue id of each queue that a master takes messages for."""
    return [
        (broker.broker_name, queue_id)
        for broker, queues in broker_queues(route)
        if queues.perm & PermName.PERM_WRITE and MASTER_ID in broker.broker_addrs
        for queue_id in range(queues.write_queue_nums)
    ]


def readable(route: TopicRouteData) -> list[tuple[BrokerData, QueueData]]:
    """Return the brokers that have a master and readable queues."""
    return [
        (broker, queues)
        for broker, queues in broker_queues(route)
        if queues.perm & PermName.PERM_READ and queues.read_queue_nums and MASTER_ID in broker.broker_addrs
    ]


def permissions(queues: QueueData) -> Iterator[str]:
    """Yield the permission of each queue, by its id: the surplus of the larger kind first (Apache: RouteActivity)."""
    reads = queues.read_queue_nums if queues.perm & PermName.PERM_READ else 0
    writes = queues.write_queue_nums if queues.perm & PermName.PERM_WRITE else 0
    if not reads and not writes:
        yield "NONE"
    both = min(reads, writes)
    yield from ["READ"] * (reads - both)
    yield from ["WRITE"] * (writes - both)
    yield from ["READ_WRITE"] * both


def permission(name: str) -> int:
    """Return the number of a permission."""
    return int(Permission.Value(name))


def accepted_types(message_type: str) -> list[int]:
    """Return the numbers of the message types that queues of a topic of this type accept."""
    names: Sequence[str] = ALL_TYPES if message_type == MIXED else (message_type,)
    return [MessageType.Value(name) for name in names if name in (*ALL_TYPES, PRIORITY)]


def endpoints_of(host: str, port: int) -> Any:
    """Return Endpoints with a single address."""
    scheme = "IPv6" if ":" in host else "IPv4" if host.replace(".", "").isdigit() else "DOMAIN_NAME"
    return Endpoints(scheme=AddressScheme.Value(scheme), addresses=[Address(host=host, port=port)])
