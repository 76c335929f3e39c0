"""Sizes of the next messages of queues, measured by pulling a few of each."""

from __future__ import annotations

from collections.abc import Mapping

from twisted_mq.protocol.bodies import MessageQueue
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.spark.live.cluster import Cluster
from twisted_mq.spark.live.pulling import PullSelection, pull_request
from twisted_mq.storage.columns.chain import chained
from twisted_mq.storage.files.mapped_log import LogBytes

SAMPLE_MESSAGES = 32
UNKNOWN_BYTES = 1024.0
"""Size that is assumed if no message could be read."""


def mean_sizes(cluster: Cluster, offsets: Mapping[MessageQueue, int], group: str) -> dict[MessageQueue, float]:
    """Return the mean record size of one pull from each offset, in bytes."""

    def request(queue: MessageQueue) -> RemotingCommand:
        return pull_request(queue, offsets[queue], SAMPLE_MESSAGES, group, PullSelection())

    sizes: dict[MessageQueue, float] = {}
    for queue, answer, _ in cluster.ask_about(list(offsets), request):
        log = LogBytes(answer.body, "", 0)
        count = len(chained(log, 0, log.size))
        sizes[queue] = log.size / count if count else UNKNOWN_BYTES
    return sizes
