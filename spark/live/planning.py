"""Stretches of queues that a batch reads: the shares of a limit, and cuts for enough tasks. Pure functions."""

from __future__ import annotations

import itertools
from collections.abc import Mapping

from twisted_mq.protocol.bodies import MessageQueue
from twisted_mq.spark.live.offset_maps import Offsets
from twisted_mq.spark.live.pulling import Stretch


def stretches(start: Mapping[MessageQueue, int], end: Mapping[MessageQueue, int]) -> list[Stretch]:
    """Return the stretches between two sets of offsets, by queue; queues that are not in both, and empty stretches, are
    skipped."""
    both = sorted(start.keys() & end.keys())
    return [Stretch(queue, start[queue], end[queue]) for queue in both if start[queue] < end[queue]]


def split(found: list[Stretch], least: int, most_messages: int | None = None) -> list[Stretch]:
    """Cut the stretches into approximately `least` parts; larger ones into more parts (Apache Spark's rule).

    Parts of a stretch differ by one message at most; none is empty, and none has more than `most_messages`.
    """
    if len(found) >= least and most_messages is None:
        return found
    total = sum(one.end - one.start for one in found)
    parts: list[Stretch] = []
    for one in found:
        size = one.end - one.start
        needed = 1 if most_messages is None else -(-size // most_messages)
        count = min(size, max(needed, round(size / total * least) if len(found) < least else 1))
        cuts = [one.start + size * number // count for number in range(count + 1)]
        parts += [Stretch(one.queue, begin, stop) for begin, stop in itertools.pairwise(cuts)]
    return parts


def limited(start: Offsets, end: Offsets, most: float, weights: Mapping[MessageQueue, float] | None = None) -> Offsets:
    """Limit `end` so that all queues together have at most `most` messages, or bytes if weights are bytes per message.

    Each queue gets a share by its lag (like Kafka's source), and at least one message if the limit allows one for each; at least
    one message in total, so that a query continues.
    """
    behind = {queue: end[queue] - start[queue] for queue in start.keys() & end.keys() if start[queue] < end[queue]}
    weigh = weights or dict.fromkeys(behind, 1.0)
    total = sum(count * weigh[queue] for queue, count in behind.items())
    if total <= most:
        return dict(end)
    shares = {queue: int(count * most / total) for queue, count in behind.items()}
    left = most - sum(shares[queue] * weigh[queue] for queue in shares)
    for queue in sorted(behind, key=lambda one: shares[one] - behind[one]):
        if not shares[queue] and (left >= weigh[queue] or not any(shares.values())):
            shares[queue] = 1
            left -= weigh[queue]
    return {**end, **{queue: start[queue] + share for queue, share in shares.items()}}
