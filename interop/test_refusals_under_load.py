"""Refusals that operators switch on, as Apache's client sees them at both kinds of brokers: late sends, pull consumers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from interop.peers.clients import Clients, JavaPeer, bodies, flat, unique
from interop.peers.line_peer import PeerError, Record
from interop.peers.process import wait_until
from interop.peers.servers import CLUSTER_NAME, COMMANDS, Cluster, running
from interop.peers.waiting import ALL_QUEUES

pytestmark = pytest.mark.peer

SETTINGS = {"waitTimeMillsInSendQueue": 1, "sendMessageThreadPoolNums": 1, "rejectPullConsumerEnable": "true"}
BURST = 2_000
BURSTS = 10
"""So many at most until one of them makes a send wait."""
SYSTEM_BUSY, SUBSCRIPTION_NOT_EXIST = 2, 24
LATE = "[TIMEOUT_CLEAN_QUEUE]broker busy, start flow control for a while, period in queue: "
REJECTED = "the consumer's group info not exist, or the pull consumer is rejected by server."
QUIET_MS = 3_000


@pytest.fixture(scope="module", params=list(COMMANDS))
def strict(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    cluster = Cluster(request.param, tmp_path_factory.mktemp(f"strict-{request.param}"), settings=SETTINGS)
    with running(cluster) as servers:
        yield servers


@pytest.fixture
def clients(java: JavaPeer, strict: Cluster) -> Iterator[Clients]:
    made = Clients(java, strict.name_server)
    yield made
    made.stop()


@pytest.fixture
def own_topic(java: JavaPeer, strict: Cluster) -> str:
    name = unique("Topic")
    java.mqadmin("updateTopic", "-n", strict.name_server, "-c", CLUSTER_NAME, "-t", name, "-r", "4", "-w", "4")
    strict.wait_route(name)
    return name


def change(java: JavaPeer, cluster: Cluster, key: str, value: str) -> None:
    """Change a setting while the broker runs."""
    command = ("updateBrokerConfig", "-b", cluster.broker, "-n", cluster.name_server, "-k", key, "-v", value)
    assert "success" in java.mqadmin(*command)


def burst(clients: Clients, topic: str) -> tuple[int, list[Record]]:
    """Send many at once; how many were stored, and the errors of the others."""
    sent = clients.producer().command("send_async", messages=[{"topic": topic, "body": "x"}] * BURST)
    refused = [one for one in sent if "status" not in one]
    return len(sent) - len(refused), refused


def end_of(clients: Clients, topic: str) -> int:
    reader = clients.pull_consumer(unique("Looks"))
    return sum(reader.command("offsets", topic, queue_id)["max"] for queue_id in ALL_QUEUES)


def test_sends_that_waited_too_long_are_refused_and_not_stored(
    java: JavaPeer, strict: Cluster, clients: Clients, own_topic: str
) -> None:
    """waitTimeMillsInSendQueue=1, and one thread to send at Apache's; then brokerFastFailureEnable=false."""
    stored, refused = 0, list[Record]()
    for _ in range(BURSTS):
        of_this, refused = burst(clients, own_topic)
        stored += of_this
        if refused:
            break
    if not refused and strict.kind == "ours":
        pytest.skip(
            f"no send of {BURSTS * BURST:,} had to wait for a millisecond here; tests of fast_failure have it refused"
        )
    assert {(one["type"], one["code"]) for one in refused} == {("MQBrokerException", SYSTEM_BUSY)}
    assert all(LATE in one["message"] for one in refused), refused[0]
    wait_until(lambda: end_of(clients, own_topic) == stored, f"{stored} messages, and no refused one")
    change(java, strict, "brokerFastFailureEnable", "false")
    try:
        assert burst(clients, own_topic) == (BURST, [])
    finally:
        change(java, strict, "brokerFastFailureEnable", "true")


def test_consumers_that_pull_by_themselves_are_refused_and_push_consumers_served(
    java: JavaPeer, strict: Cluster, clients: Clients, own_topic: str
) -> None:
    """rejectPullConsumerEnable, until it is switched off. Sends are not refused meanwhile."""
    change(java, strict, "brokerFastFailureEnable", "false")
    clients.producer().send_all(own_topic, ["1", "2", "3", "4"])
    puller, polling = clients.pull_consumer(unique("Pulls")), clients.lite_pull_consumer(unique("Polls"), own_topic)

    def pull() -> list[str]:
        pulled = [puller.command("pull", own_topic, number, tags="*", offset=0, max=9) for number in ALL_QUEUES]
        return sorted(bodies(flat(one["messages"] for one in pulled)))

    with pytest.raises(PeerError) as refused:
        pull()
    assert (refused.value.type, refused.value.code) == ("MQBrokerException", SUBSCRIPTION_NOT_EXIST)
    assert REJECTED in refused.value.message
    clients.push_consumer(unique("Pushed"), own_topic).wait_bodies({"1", "2", "3", "4"})
    assert polling.command("poll", timeout_ms=QUIET_MS) == []
    change(java, strict, "rejectPullConsumerEnable", "false")
    try:
        assert pull() == ["1", "2", "3", "4"]
        polling.poll_bodies({"1", "2", "3", "4"})
    finally:
        change(java, strict, "rejectPullConsumerEnable", "true")
        change(java, strict, "brokerFastFailureEnable", "true")
