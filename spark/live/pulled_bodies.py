"""A stretch of a queue from whichever replicas have it: master and slaves in turn, again after pauses."""

from __future__ import annotations

from collections.abc import Iterator

from twisted_mq.spark.live.cluster import Cluster
from twisted_mq.spark.live.errors import Behind, BrokerSilent, OffsetsLost, PeerSilent
from twisted_mq.spark.live.pulling import StretchPull, queue_text


def pulled_bodies(cluster: Cluster, pull: StretchPull) -> Iterator[bytes]:
    """The bodies of the answers, in the queue's order, to the stretch's end. Raises LiveError."""
    queue, failures = pull.stretch.queue, 0
    while pull.position < pull.stretch.end:
        before = pull.position
        silent: list[PeerSilent] = []
        for address in cluster.replicas(queue):
            try:
                yield from pull.bodies(cluster.connection(address))
                break
            except PeerSilent as error:
                silent.append(error)
        else:
            failures = 1 if pull.position > before else failures + 1
            if failures >= cluster.access.tries:
                _give_up(cluster, pull, silent)
                return
            cluster.pause(failures)
            cluster.forget(queue)


def _give_up(cluster: Cluster, pull: StretchPull, silent: list[PeerSilent]) -> None:
    """Raises BrokerSilent; OffsetsLost where replicas answer and none has the messages, unless loss is allowed."""
    queue = pull.stretch.queue
    ends = [error.end for error in silent if isinstance(error, Behind)]
    if not ends or len(ends) < len(silent):
        raise BrokerSilent(queue.broker_name, list(map(str, silent)), cluster.host)
    pull.note(OffsetsLost(queue_text(queue), pull.position, max(ends), "no replica has more"))
