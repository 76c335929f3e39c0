"""The blocking calls, against a broker."""

from __future__ import annotations

import socket
from collections.abc import Iterable, Iterator

import attrs
import pytest

from tests.spark.live.brokers import Broker
from twisted_mq.protocol.bodies import MessageQueue
from twisted_mq.protocol.codes import ResponseCode
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.spark.live.cluster import LONGEST_PAUSE_SECONDS, Access, Cluster
from twisted_mq.spark.live.connection import Dialling, PeerConnection
from twisted_mq.spark.live.errors import BrokerSilent, NameServersSilent, TopicUnknown
from twisted_mq.spark.live.kept_clusters import kept_cluster
from twisted_mq.spark.live.queue_offsets import commit_offsets, first_offsets, group_offsets, next_offsets, offsets_at


@pytest.fixture
def cluster(broker: Broker) -> Iterator[Cluster]:
    found = broker.cluster()
    yield found
    found.close()


@pytest.fixture
def closed_port() -> str:
    """Return an address without a listener."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return f"127.0.0.1:{server.getsockname()[1]}"


def test_queues_of_a_topic_and_the_list_of_topics(broker: Broker, cluster: Cluster) -> None:
    topic = broker.topic(3)
    queues = [MessageQueue(topic, "broker-a", number) for number in range(3)]
    assert cluster.readable_queues(topic) == queues
    assert list(cluster.writable_queues(topic)) == queues
    assert topic in cluster.topics()
    with pytest.raises(TopicUnknown, match="topic 'Nowhere' does not exist"):
        cluster.route("Nowhere")


def test_offsets_of_queues(broker: Broker, cluster: Cluster) -> None:
    topic = broker.topic(2)
    first, second = cluster.readable_queues(topic)
    broker.send(topic, [b"one", b"two", b"three"])
    assert first_offsets(cluster, [first, second]) == {first: 0, second: 0}
    assert next_offsets(cluster, [first, second]) == {first: 3, second: 0}
    assert offsets_at(cluster, [first], 0) == {first: 0}
    assert offsets_at(cluster, [first], 1 << 50) == {first: 3}


def test_offsets_of_a_group_are_kept_as_they_were_given(broker: Broker, cluster: Cluster) -> None:
    first, second = cluster.readable_queues(broker.topic(2))
    assert group_offsets(cluster, [first, second], "Readers") == {}
    commit_offsets(cluster, "Readers", {first: 0})
    assert group_offsets(cluster, [first, second], "Readers") == {first: 0}


def test_a_name_server_that_is_down_is_passed_over(broker: Broker, closed_port: str) -> None:
    cluster = Cluster(Access((closed_port, broker.name_server)))
    topic = broker.topic(1)
    assert len(cluster.readable_queues(topic)) == 1
    cluster.close()


def test_silence_names_all_addresses_and_who_asked(closed_port: str) -> None:
    cluster = Cluster(Access((closed_port, "127.0.0.1:1"), tries=3), sleep=lambda seconds: None)
    with pytest.raises(NameServersSilent) as caught:
        cluster.topics()
    assert all(part in str(caught.value) for part in (closed_port, "127.0.0.1:1", socket.gethostname(), "refused"))


def test_a_server_that_does_not_answer_is_given_up() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        cluster = Cluster(Access((address,), Dialling(timeout_seconds=0.2), tries=1))
        with pytest.raises(NameServersSilent, match=r"no answer within 0\.2 s"):
            cluster.topics()


def test_a_broker_without_a_route_is_named(broker: Broker, cluster: Cluster) -> None:
    queue = MessageQueue(broker.topic(1), "broker-x", 0)
    with pytest.raises(BrokerSilent, match=r"broker broker-x is not reached from .*no name server knows an address"):
        next_offsets(cluster, [queue])


@attrs.define
class Time:
    """Seconds pass in pauses alone."""

    seconds: float = 0.0

    def sleep(self, seconds: float) -> None:
        self.seconds += seconds

    def now(self) -> float:
        return self.seconds


def test_patience_outlasts_the_tries_and_ends(closed_port: str) -> None:
    time = Time()
    cluster = Cluster(Access((closed_port,), tries=2, patience_seconds=300), time.sleep, time.now)
    with pytest.raises(NameServersSilent):
        cluster.topics()
    assert 300 <= time.seconds <= 300 + LONGEST_PAUSE_SECONDS


def test_a_stream_has_patience_unless_its_options_say_how_often_it_asks() -> None:
    access = Access(("n:1",))
    assert access.for_stream().patience_seconds == 300
    for said in (attrs.evolve(access, tries=2), attrs.evolve(access, patience_seconds=7)):
        assert said.for_stream() == said


def test_a_broker_that_cannot_serve_just_now_is_asked_again(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    topic = broker.topic(1)
    cluster = broker.cluster()
    queues = cluster.readable_queues(topic)
    answers = iter([ResponseCode.GO_AWAY, ResponseCode.SERVICE_NOT_AVAILABLE])
    ask = PeerConnection.call_all

    def call_all(self: PeerConnection, requests: Iterable[RemotingCommand]) -> list[RemotingCommand]:
        found = ask(self, requests)
        for answer in found:
            answer.code = next(answers, answer.code)
        return found

    monkeypatch.setattr(PeerConnection, "call_all", call_all)
    assert next_offsets(cluster, queues) == {queues[0]: 0}
    cluster.close()


def test_connections_are_kept_until_the_peer_ends_them(broker: Broker) -> None:
    access = Access((broker.name_server,))
    with kept_cluster(access) as first:
        first.topics()
        connection = first.connection(broker.name_server)
    with kept_cluster(access) as second:
        assert second is first and second.connection(broker.name_server) is connection
    connection._socket.shutdown(socket.SHUT_RDWR)
    with kept_cluster(access) as third:
        assert third.connection(broker.name_server) is not connection
        third.topics()
    with pytest.raises(KeyError), kept_cluster(access) as failed:
        raise KeyError
    with kept_cluster(access) as fresh:
        assert fresh is not failed
    assert connection.closed


def test_pauses_grow(closed_port: str) -> None:
    pauses: list[float] = []
    cluster = Cluster(Access((closed_port,), tries=4), sleep=pauses.append)
    with pytest.raises(NameServersSilent):
        cluster.topics()
    assert pauses == [0.5, 1.0]
