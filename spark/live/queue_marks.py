"""Marks of the progress in queues, with proof that a queue is still the one that was read.

A mark has the next offset, and the fingerprint of the message before it. In an offset of Spark it is the number alone, or
{"next": 5, "last": [physical offset, size, CRC, store time], "lost": 2}. Numbers alone come from earlier releases too.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from twisted_mq.protocol.bodies import MessageQueue
from twisted_mq.protocol.codes import ResponseCode
from twisted_mq.protocol.layouts.record import unpack_queue_offset
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.spark.fingerprints import Fingerprint, fingerprint_of
from twisted_mq.spark.live.cluster import Cluster
from twisted_mq.spark.live.errors import RequestRefused
from twisted_mq.spark.live.offset_maps import Leaf, OffsetMap, leaves, nested
from twisted_mq.spark.live.pulling import PULL_STATUSES, PullSelection, pull_request, queue_text
from twisted_mq.storage.columns.chain import chained
from twisted_mq.storage.files.mapped_log import LogBytes

QUEUES_AT_ONCE = 32
"""Number of queues whose last messages are pulled at once: each answer has a whole message."""


@attrs.frozen
class QueueMark:
    """All messages before the offset `next` were read; `last` is the fingerprint of the last of them.

    `last` is None where no message was read, where no broker has it any more, and in offsets of earlier releases.
    """

    next: int
    last: Fingerprint | None = None
    lost: int = 0
    """Number of messages that a stream with failOnDataLoss=false skipped, because they were deleted before they were read."""

    def as_json(self) -> Leaf:
        """Return the mark for JSON."""
        kept: dict[str, object] = {"next": self.next}
        if self.last is not None:
            kept["last"] = list(attrs.astuple(self.last))
        if self.lost:
            kept["lost"] = self.lost
        return kept if len(kept) > 1 else self.next


Marks = dict[MessageQueue, QueueMark]


def parse_marks(tree: OffsetMap) -> Marks:
    """Return the mark of each queue of an offset. Raises ValueError, TypeError, KeyError for other JSON."""
    return {queue: _parse(leaf) for queue, leaf in leaves(tree).items()}


def _parse(leaf: Leaf) -> QueueMark:
    if not isinstance(leaf, dict):
        return QueueMark(leaf)
    last = leaf.get("last")
    return QueueMark(leaf["next"], None if last is None else Fingerprint(*map(int, last)), leaf.get("lost", 0))


def as_tree(marks: Marks) -> OffsetMap:
    """Return marks in the form of Spark."""
    return nested({queue: mark.as_json() for queue, mark in marks.items()})


def last_messages(cluster: Cluster, offsets: Mapping[MessageQueue, int], group: str) -> dict[MessageQueue, Fingerprint]:
    """Return the fingerprint of the message before each offset; queues whose broker does not have it are left out.

    Raises BrokerSilent, Refused.
    """

    def request(queue: MessageQueue) -> RemotingCommand:
        return pull_request(queue, offsets[queue] - 1, 1, group, PullSelection())

    asked = sorted(queue for queue, offset in offsets.items() if offset > 0)
    found = {}
    for begin in range(0, len(asked), QUEUES_AT_ONCE):
        for queue, answer, address in cluster.ask_about(asked[begin : begin + QUEUES_AT_ONCE], request):
            if answer.code not in PULL_STATUSES:
                what = f"a pull of {queue_text(queue)}"
                raise RequestRefused(address, what, answer.code, answer.remark or "", cluster.host)
            if answer.code == ResponseCode.SUCCESS and _is_before(answer.body, offsets[queue]):
                found[queue] = fingerprint_of(answer.body)
    return found


def _is_before(body: bytes, offset: int) -> bool:
    """Return True if an answer begins with a record of a message before the offset."""
    log = LogBytes(body, "", 0)
    return len(chained(log, 0, log.size)) > 0 and unpack_queue_offset(body)[0] < offset


def changed(cluster: Cluster, marks: Marks, group: str) -> list[MessageQueue]:
    """Return the queues that have another message at the place of the last one that was read. Raises BrokerSilent, Refused."""
    known = {queue: mark.next for queue, mark in marks.items() if mark.last is not None}
    found = last_messages(cluster, known, group)
    return sorted(queue for queue in found if found[queue] != marks[queue].last)
