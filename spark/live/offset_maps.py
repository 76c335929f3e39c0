"""Offsets of many queues as JSON: {topic: {broker: {queue: offset}}}, the form in options, checkpoints and progress.

In options -2 means the first stored offset, and -1 the end. In checkpoints an offset may be an object with the field `next` and
others: see `queue_marks`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from twisted_mq.protocol.bodies import MessageQueue
from twisted_mq.spark.errors import WrongOption

EARLIEST, LATEST = -2, -1

Leaf = Any
"""The offset of a queue, or an object with the field `next`."""
OffsetMap = dict[str, dict[str, dict[str, Leaf]]]
Offsets = dict[MessageQueue, int]

_EXAMPLE = '{"Orders": {"broker-a": {"0": 17, "1": -2}}}'


def nested(offsets: Mapping[MessageQueue, Leaf]) -> OffsetMap:
    """Return offsets in the form of Spark, in the order of topic, broker and queue."""
    tree: OffsetMap = {}
    for queue in sorted(offsets):
        tree.setdefault(queue.topic, {}).setdefault(queue.broker_name, {})[str(queue.queue_id)] = offsets[queue]
    return tree


def leaves(tree: OffsetMap) -> dict[MessageQueue, Leaf]:
    """Return the offset or object of each queue."""
    return {
        MessageQueue(topic, broker_name, int(queue_id)): leaf
        for topic, brokers in tree.items()
        for broker_name, queues in brokers.items()
        for queue_id, leaf in queues.items()
    }


def flat(tree: OffsetMap) -> Offsets:
    """Return the offset of each queue."""
    return {queue: leaf["next"] if isinstance(leaf, dict) else leaf for queue, leaf in leaves(tree).items()}


def parse_offsets(name: str, text: str) -> Offsets:
    """Parse the offsets of an option. Raises WrongOption, which shows an example."""
    try:
        tree = json.loads(text)
        offsets = flat(tree)
    except (ValueError, AttributeError, KeyError) as error:
        raise WrongOption(name, text, f"offsets must look like {_EXAMPLE}: {error}") from error
    for queue, offset in offsets.items():
        if type(offset) is not int or offset < EARLIEST:
            raise WrongOption(name, text, f"{offset!r} is not an offset; -2 is the first stored message, -1 the end")
        if queue.queue_id < 0:
            raise WrongOption(name, text, f"there is no queue {queue.queue_id}")
    return offsets
