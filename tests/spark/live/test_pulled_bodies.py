"""Master and slaves, asked in turn."""

from __future__ import annotations

import pytest

from tests.spark.live.scripted import ScriptedConnection, ScriptedQueue
from twisted_mq.protocol.bodies import BrokerData, MessageQueue
from twisted_mq.spark.live.cluster import Access, Cluster
from twisted_mq.spark.live.errors import BrokerSilent, OffsetsLost, PeerSilent
from twisted_mq.spark.live.pulling import PullLimits, PullSelection, Stretch, StretchPull
from twisted_mq.spark.live.tasks import pulled_bodies

QUEUE = MessageQueue("Orders", "broker-a", 0)


class Replicas(Cluster):
    """Master m:1 and slaves, each with its queue; None does not answer."""

    def __init__(self, queues: dict[str, ScriptedQueue | None], *, from_slaves: bool = False) -> None:
        super().__init__(Access(("n:1",), from_slaves=from_slaves, tries=2), sleep=lambda seconds: None)
        self.queues = queues
        self.asked: list[str] = []

    def replicas(self, queue: MessageQueue) -> list[str]:
        self._brokers["broker-a"] = BrokerData(broker_name="broker-a", broker_addrs=dict(enumerate(self.queues)))
        return super().replicas(queue)

    def connection(self, address: str) -> ScriptedConnection:  # type: ignore[override]
        self.asked.append(address)
        queue = self.queues[address]
        if queue is None:
            raise PeerSilent(address, "no connection")
        return ScriptedConnection(queue, address=address)


def pull(*, fail: bool = True) -> StretchPull:
    return StretchPull(Stretch(QUEUE, 0, 100), "G", PullSelection(), PullLimits(10, 2), fail_on_data_loss=fail)


def read(cluster: Cluster, one: StretchPull) -> list[int]:
    return [int(offset) for body in pulled_bodies(cluster, one) for offset in body.decode().split(",") if offset]


def test_the_master_is_asked_first() -> None:
    cluster = Replicas({"m:1": ScriptedQueue(0, 100), "s:1": None})
    assert (read(cluster, pull()), cluster.asked) == (list(range(100)), ["m:1"])


def test_a_slave_that_lags_is_followed_by_the_master() -> None:
    cluster = Replicas({"m:1": ScriptedQueue(0, 100), "s:1": ScriptedQueue(0, 60)}, from_slaves=True)
    assert (read(cluster, pull()), cluster.asked) == (list(range(100)), ["s:1", "m:1"])


def test_a_master_that_does_not_answer_is_followed_by_its_slaves() -> None:
    cluster = Replicas({"m:1": None, "s:1": None, "s:2": ScriptedQueue(0, 100)})
    assert (read(cluster, pull()), cluster.asked) == (list(range(100)), ["m:1", "s:1", "s:2"])


def test_a_slave_alone_that_lags_is_no_loss_while_the_master_is_away() -> None:
    cluster = Replicas({"m:1": None, "s:1": ScriptedQueue(0, 60)})
    with pytest.raises(BrokerSilent, match=r"m:1: no connection; s:1: has queue 0 of Orders .* up to offset 60"):
        read(cluster, pull())


def test_what_no_replica_has_is_lost() -> None:
    replicas = {"m:1": ScriptedQueue(0, 60), "s:1": ScriptedQueue(0, 50)}
    with pytest.raises(OffsetsLost, match="offset 60 was requested, the first one is 60: no replica has more"):
        read(Replicas(dict(replicas)), pull())
    lenient = pull(fail=False)
    assert read(Replicas(dict(replicas)), lenient) == list(range(60))
    assert len(lenient.lost) == 1


def test_an_unknown_broker_is_named() -> None:
    with pytest.raises(BrokerSilent, match="no name server knows an address of it"):
        read(Replicas({}), pull())
