"""Offsets of many queues as JSON: {topic: {broker: {queue: offset}}}, as options, checkpoints and progress have them.

In options -2 stands for the first offset that is kept, and -1 for the end.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from twisted_mq.protocol.bodies import MessageQueue
from twisted_mq.spark.errors import WrongOption

EARLIEST, LATEST = -2, -1

OffsetMap = dict[str, dict[str, dict[str, int]]]
Offsets = dict[MessageQueue, int]

_EXAMPLE = '{"Orders": {"broker-a": {"0": 17, "1": -2}}}'


def nested(offsets: Mapping[MessageQueue, int]) -> OffsetMap:
    """As Spark keeps them, in the order of topic, broker and queue."""
    tree: OffsetMap = {}
    for queue in sorted(offsets):
        tree.setdefault(queue.topic, {}).setdefault(queue.broker_name, {})[str(queue.queue_id)] = offsets[queue]
    return tree


def flat(tree: OffsetMap) -> Offsets:
    """The offset of each queue."""
    return {
        MessageQueue(topic, broker_name, int(queue_id)): offset
        for topic, brokers in tree.items()
        for broker_name, queues in brokers.items()
        for queue_id, offset in queues.items()
    }


def parse_offsets(name: str, text: str) -> Offsets:
    """The offsets of an option. Raises WrongOption, which shows what one looks like."""
    try:
        tree = json.loads(text)
        offsets = flat(tree)
    except (ValueError, AttributeError) as error:
        raise WrongOption(name, text, f"offsets look like {_EXAMPLE}: {error}") from error
    for queue, offset in offsets.items():
        if type(offset) is not int or offset < EARLIEST:
            raise WrongOption(name, text, f"{offset!r} is no offset; -2 is the first kept, -1 the end")
        if queue.queue_id < 0:
            raise WrongOption(name, text, f"there is no queue {queue.queue_id}")
    return offsets
