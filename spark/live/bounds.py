"""Bounds of a read: earliest, latest, a group's offsets, a time, or an offset for each queue."""

from __future__ import annotations

import logging
from collections.abc import Sequence

import attrs

from twisted_mq.protocol.bodies import MessageQueue
from twisted_mq.spark.errors import WrongOption
from twisted_mq.spark.live.cluster import Cluster
from twisted_mq.spark.live.errors import OffsetsLost
from twisted_mq.spark.live.held import Held, at_time_of_both, first_of_both
from twisted_mq.spark.live.offset_maps import EARLIEST, LATEST, Offsets, parse_offsets
from twisted_mq.spark.live.pulling import queue_text
from twisted_mq.spark.live.queue_offsets import group_offsets, next_offsets

log = logging.getLogger(__name__)
WORDS = {"earliest": EARLIEST, "latest": LATEST}
GROUP = "group"


@attrs.frozen
class Bound:
    """A bound of a read, given by `option`. Queues that are not in `offsets` have `otherwise`, -2 or -1."""

    option: str
    otherwise: int
    of_group: bool = False
    timestamp_ms: int | None = None
    offsets: Offsets | None = None
    times: Offsets | None = None
    """Time for each queue, in ms since 1970."""
    is_strict: bool = False
    """True if a queue without messages from its time on is an error."""


def parse_bound(name: str, text: str, otherwise: int) -> Bound:
    """Raises WrongOption."""
    word = text.strip().lower()
    if word in WORDS:
        return Bound(name, WORDS[word])
    if word == GROUP:
        return Bound(name, EARLIEST, of_group=True)
    return Bound(name, otherwise, offsets=parse_offsets(name, text))


def resolve(
    bound: Bound,
    cluster: Cluster,
    queues: Sequence[MessageQueue],
    group: str,
    held: Held | None = None,
    *,
    fail_on_data_loss: bool = True,
) -> Offsets:
    """Return the offset of each queue. Without a committed offset of a group it is the earliest.

    Raises WrongOption for an offset of an unknown queue or past the end, and OffsetsLost for an offset that neither brokers nor
    files in `held` have any more. Without `fail_on_data_loss` the first available offset replaces a lost one.
    """
    if bound.timestamp_ms is not None:
        return _at_times(bound, dict.fromkeys(queues, bound.timestamp_ms), cluster, held)
    if bound.times is not None:
        _check_queues(bound, bound.times, queues)
        plain = attrs.evolve(bound, times=None)
        left = [queue for queue in queues if queue not in bound.times]
        others = resolve(plain, cluster, left, group, held, fail_on_data_loss=fail_on_data_loss)
        return others | _at_times(bound, bound.times, cluster, held)
    named = dict(bound.offsets or {})
    _check_queues(bound, named, queues)
    if bound.of_group:
        named = group_offsets(cluster, queues, group)
    wanted = {queue: named.get(queue, bound.otherwise) for queue in queues}
    ends = next_offsets(cluster, queues) if named or LATEST in wanted.values() else {}
    firsts = first_of_both(cluster, queues, held) if named or EARLIEST in wanted.values() else {}
    marks = {EARLIEST: firsts, LATEST: ends}
    found = {queue: marks[offset][queue] if offset in marks else offset for queue, offset in wanted.items()}
    for queue in named:
        found[queue] = _kept(bound, queue, found[queue], firsts[queue], ends[queue], fail_on_data_loss)
    return found


def _at_times(bound: Bound, times: Offsets, cluster: Cluster, held: Held | None) -> Offsets:
    """Return the offset of each queue's first message of its time or later, or its end. Raises WrongOption for a strict bound."""
    found: Offsets = {}
    for time in set(times.values()):
        found |= at_time_of_both(cluster, [queue for queue in times if times[queue] == time], time, held)
    ends = next_offsets(cluster, list(times)) if bound.is_strict else {}
    for queue in sorted(ends):
        if found[queue] >= ends[queue]:
            raise WrongOption(bound.option, str(times[queue]), f"{queue_text(queue)} has no message from then on")
    return found


def _check_queues(bound: Bound, named: Offsets, queues: Sequence[MessageQueue]) -> None:
    for queue in sorted(named.keys() - set(queues)):
        there = ", ".join(f"{one.broker_name} {one.queue_id}" for one in queues if one.topic == queue.topic)
        reason = f"there is no {queue_text(queue)}; of {queue.topic} there are {there or 'none'}"
        raise WrongOption(bound.option, f"{queue.topic} {queue.broker_name} {queue.queue_id}", reason)


def _kept(bound: Bound, queue: MessageQueue, offset: int, first: int, end: int, fail: bool) -> int:
    """Return the offset, if the queue has it."""
    if offset > end:
        reason = f"{queue_text(queue)} ends at {end}"
        raise WrongOption(bound.option, str(offset), reason)
    if offset < first:
        loss = OffsetsLost(queue_text(queue), offset, first, "no longer kept")
        if fail:
            raise loss
        log.warning("messages lost, skipped count=%d: %s", first - offset, loss)
    return max(offset, first)
