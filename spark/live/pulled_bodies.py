"""A stretch of a queue from any replica that has it: master and slaves in turn, with retries after pauses."""

from __future__ import annotations

from collections.abc import Iterator

from twisted_mq.spark.live.cluster import Cluster
from twisted_mq.spark.live.errors import Behind, BrokerSilent, OffsetsLost, PeerSilent
from twisted_mq.spark.live.pulling import StretchPull, queue_text


def pulled_bodies(cluster: Cluster, pull: StretchPull) -> Iterator[bytes]:
    """Yield the bodies of the answers, in the queue's order, to the stretch's end. Raises LiveError."""
    queue, failures, began = pull.stretch.queue, 0, cluster.now()
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
            if pull.position > before:
                failures, began = 0, cluster.now()
            failures += 1
            waited = float("inf") if _all_answer(silent) else cluster.now() - began
            if cluster.access.is_over(failures, waited):
                _give_up(cluster, pull, silent)
                return
            cluster.pause(failures)
            cluster.forget(queue)


def _all_answer(silent: list[PeerSilent]) -> bool:
    """Return True if all replicas answer, and none of them has the messages."""
    return bool(silent) and all(isinstance(error, Behind) for error in silent)


def _give_up(cluster: Cluster, pull: StretchPull, silent: list[PeerSilent]) -> None:
    """Raise BrokerSilent, or OffsetsLost if replicas answer and none has the messages, unless loss is allowed."""
    queue = pull.stretch.queue
    ends = [error.end for error in silent if isinstance(error, Behind)]
    if not _all_answer(silent):
        raise BrokerSilent(queue.broker_name, list(map(str, silent)), cluster.host)
    pull.note(OffsetsLost(queue_text(queue), pull.position, max(ends), "no replica has more"))
