"""Every daily mqadmin command, Apache's tool against both clusters: outputs of the shapes that are recorded of Apache's."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import attrs
import pytest

from interop.mqadmin_commands import (
    ALONE,
    COMMANDS,
    ELSEWHERE,
    ENDLESS,
    NEEDING,
    SAMPLED,
    SETTINGS,
    THROWN,
    keys_of,
    shape_of,
)
from interop.peers.clients import Clients, JavaPeer, OurPeer, Producer, unique
from interop.peers.process import wait_until
from interop.peers.servers import BROKER_NAME, CLUSTER_NAME, Cluster, running
from interop.peers.servers import COMMANDS as SERVERS
from interop.peers.toolchain import java_command
from interop.peers.waiting import consume_for_good, has_committed_all
from interop.recorded import Recording
from twisted_mq.broker.options import BrokerOptions
from twisted_mq.cli.admin.registry import find_sub_command, sub_commands
from twisted_mq.config.known_keys import known_keys
from twisted_mq.config.options import option_fields

pytestmark = pytest.mark.peer

MQADMIN_CLASS = "org.apache.rocketmq.tools.command.MQAdminStartup"
RECORDED = Recording.named("mqadmin")
"""The shape of what each command prints about Apache's cluster."""

KEYS_OF_STATUS = "keys of brokerStatus"
BODIES = [f"body {number}" for number in range(8)]


@attrs.define(eq=False)
class Stage:
    """Clients that stay connected, and the names for commands."""

    java: JavaPeer
    clients: Clients
    directory: Path
    names: dict[str, str]
    producer: Producer | None = None

    @classmethod
    def make(cls, java: JavaPeer, cluster: Cluster, directory: Path) -> Stage:
        """A topic of four queues with eight messages, taken by a consumer."""
        words = ("TOPIC", "SPARE_TOPIC", "LISTED_TOPIC", "GROUP", "SPARE_GROUP", "LISTED_GROUP", "PRODUCER", "SPACE")
        names = {word: unique(word.title().replace("_", "")) for word in words}
        names |= {"NAMESRV": cluster.name_server, "BROKER": cluster.broker}
        stage = cls(java, Clients(java, cluster.name_server), directory, names)
        java.mqadmin(
            "updateTopic", "-n", cluster.name_server, "-c", CLUSTER_NAME, "-t", names["TOPIC"], "-r", "4", "-w", "4"
        )
        cluster.wait_route(names["TOPIC"])
        stage._make_clients()
        stage._make_files()
        return stage

    def _make_clients(self) -> None:
        topic = self.names["TOPIC"]
        producer = self.clients.producer(group=self.names["PRODUCER"])
        sent = [
            producer.command(
                "send_to_queue", topic=topic, body=body, tags="TagA", keys=f"key{number}", **queue_of(number)
            )
            for number, body in enumerate(BODIES)
        ]
        self.producer = producer
        self.consume_for_good("GROUP")
        consumer = self.clients.push_consumer(self.names["GROUP"], topic)
        wait_until(lambda: consumer.assigned() == [0, 1, 2, 3], "the consumer has its queues")
        first = sent[0]["offset_msg_ids"][0]
        self.names |= {"MESSAGE": first, "NO_MESSAGE": first[:-4] + "FFF1", "KEY": sent[0]["msg_ids"][0]}
        connected = self.run("consumerConnection -g GROUP")
        (self.names["CLIENT"],) = re.findall(r"\d+\.\d+\.\d+\.\d+@\S+", connected)

    def consume_for_good(self, group: str) -> None:
        """Take all messages until the broker knows; `group` is a word of `names`."""
        consume_for_good(self.clients, self.java, self.names[group], self.names["TOPIC"], BODIES)

    def send(self, body: str, number: int) -> str:
        """Send one more message; returns its body."""
        assert self.producer is not None
        self.producer.command("send_to_queue", topic=self.names["TOPIC"], body=body, **queue_of(number))
        return body

    def all_is_consumed(self, group: str) -> bool:
        """Return True if the group's offsets are committed; `group` is a word of `names`."""
        return has_committed_all(self.java, self.names["NAMESRV"], self.names[group], self.names["TOPIC"])

    def _make_files(self) -> None:
        topics = self.directory / "topics.json"
        topics.write_text(
            json.dumps([{"topicName": self.names["LISTED_TOPIC"], "readQueueNums": 2, "writeQueueNums": 2}])
        )
        groups = self.directory / "groups.json"
        groups.write_text(json.dumps([{"groupName": self.names["LISTED_GROUP"], "retryQueueNums": 2}]))
        self.names |= {"TOPIC_FILE": str(topics), "GROUP_FILE": str(groups), "EXPORTS": str(self.directory / "exports")}

    def _run_alone(self, name: str, words: list[str]) -> str:
        command = java_command(self.directory, "64m", MQADMIN_CLASS, name, "-n", self.names["NAMESRV"], *words)
        done = subprocess.run(command, capture_output=True, text=True, cwd=self.directory, timeout=60)
        return done.stdout + done.stderr

    def run_ours(self, peer: OurPeer, command: str) -> dict[str, str]:
        """Return the output of our tool (out), and the reason of a failure (err)."""
        name, *words = [self.names.get(word, word) for word in command.split()]
        arguments = (name, "-n", self.names["NAMESRV"], *words)
        return peer.mqadmin(*arguments, directory=self.directory, interrupt_after_ms=ENDLESS.get(name, 60_000))

    def run(self, command: str) -> str:
        """Return the output of a command."""
        name, *words = [self.names.get(word, word) for word in command.split()]
        if name in ALONE:
            return self._run_alone(name, words)
        return self.java.mqadmin(name, "-n", self.names["NAMESRV"], *words, interrupt_after_ms=ENDLESS.get(name))


def _compare_ours(stage: Stage, peer: OurPeer, command: str, printed: str, shape: list[str]) -> None:
    """Our tool prints the same on the same servers, and fails where Apache's throws.

    What changes something says another thing the second time: then ours is compared with Apache's second run.
    """
    ours = stage.run_ours(peer, command)
    shown = (shape_of(ours["out"], stage.names), ours["err"])
    if command.split()[0] in ENDLESS:
        assert shown[0], command
        assert (set(shown[0]) - set(shape), shown[1]) == (set(), "")
        return
    if THROWN.search(printed):
        assert ours["err"]
        return
    if shown != (shape, ""):
        shape = shape_of(stage.run(command), stage.names)
    assert shown == (shape, "")


def queue_of(number: int) -> dict[str, object]:
    """The messages go round the four queues."""
    return {"broker_name": BROKER_NAME, "queue_id": number % 4}


@pytest.fixture(scope="module", params=list(SERVERS))
def cluster(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Servers of their own: outputs are to show nothing that other tests left behind."""
    with running(Cluster(request.param, tmp_path_factory.mktemp(request.param))) as servers:
        yield servers


@pytest.fixture(scope="module")
def stage(java: JavaPeer, cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    stage = Stage.make(java, cluster, tmp_path_factory.mktemp("stage"))
    yield stage
    stage.clients.stop()


@pytest.mark.parametrize("command", COMMANDS)
def test_output_has_apaches_shape(stage: Stage, cluster: Cluster, our_client_process: OurPeer, command: str) -> None:
    printed = stage.run(command)
    if command.split()[0] in SETTINGS:
        shape = sorted(keys_of(printed) - known_keys().keys() - option_fields(BrokerOptions).keys())
        assert len(keys_of(printed)) > 10
        assert keys_of(stage.run_ours(our_client_process, command)["out"]) == keys_of(printed)
    else:
        shape = shape_of(printed, stage.names)
        _compare_ours(stage, our_client_process, command, printed, shape)
    assert shape == RECORDED.apaches(command, shape, cluster.kind)


@pytest.mark.parametrize("command", NEEDING)
def test_what_needs_other_servers_fails_alike(stage: Stage, cluster: Cluster, command: str) -> None:
    shape = shape_of(stage.run(command), stage.names)
    assert shape == RECORDED.apaches(command, shape, cluster.kind)
    found = find_sub_command(command.split()[0])
    assert found is not None and found.needs in ("a controller", "a broker container")


def test_the_recording_has_each_command_and_no_other() -> None:
    assert RECORDED.questions() == {*COMMANDS, *SAMPLED, *NEEDING, KEYS_OF_STATUS}


def test_no_subcommand_is_left_out() -> None:
    run = {line.split()[0] for line in (*COMMANDS, *SAMPLED, *NEEDING)}
    assert sorted(run | ENDLESS.keys() | ELSEWHERE.keys()) == sorted(command.name for command in sub_commands())


@pytest.mark.parametrize("command", SAMPLED)
def test_rates_have_apaches_shape(stage: Stage, cluster: Cluster, our_client_process: OurPeer, command: str) -> None:
    topic = stage.names["TOPIC"]
    stage.send("counted", 0)  # rates are those of the last minute
    wait_until(lambda: stage.all_is_consumed("GROUP"), "the group has taken it")

    def is_counted() -> bool:
        return topic in stage.run("statsAll -a -t TOPIC")

    wait_until(is_counted, "the broker has sampled its counters")
    test_output_has_apaches_shape(stage, cluster, our_client_process, command)


def test_runtime_info_has_apaches_keys(stage: Stage, cluster: Cluster, our_client_process: OurPeer) -> None:
    keys = sorted(keys_of(stage.run("brokerStatus -b BROKER")))
    assert sorted(keys_of(stage.run_ours(our_client_process, "brokerStatus -b BROKER")["out"])) == keys
    assert keys == RECORDED.apaches(KEYS_OF_STATUS, keys, cluster.kind)


def test_one_round_of_start_monitoring(stage: Stage, cluster: Cluster, our_client_process: OurPeer) -> None:
    reports = stage.java.monitor(cluster.name_server)
    group, topic = stage.names["GROUP"], stage.names["TOPIC"]
    assert (reports[0], reports[-1]) == ("begin", "end")
    assert {f"undone {group} 0", f"runs {topic}", f"runs %RETRY%{group}"} <= set(reports)
    ours = stage.run_ours(our_client_process, "startMonitoring")["out"].splitlines()
    wanted = (
        f"consumerGroup={group}, topic={topic}, undoneMsgsTotal=0, undoneMsgsSingleMQ=0, undoneMsgsDelayTimeMills=0"
    )
    assert f"[MONITOR] reportUndoneMsgs: UndoneMsgs [{wanted}]" in ours
    assert (ours[0], ours[-1]) == ("[MONITOR] " + "=" * 41 + "beginRound", "[MONITOR] " + "=" * 41 + "endRound")


@pytest.mark.parametrize("by_broker", [True, False], ids=["by the broker", "through the consumers"])
def test_a_group_that_is_reset_takes_the_messages_again(stage: Stage, cluster: Cluster, by_broker: bool) -> None:
    if cluster.kind == "apache":
        pytest.skip("Apache's client waits ten seconds in this, and its own broker needs no such test")
    setting = "updateBrokerConfig -b BROKER -k useServerSideResetOffset -v "
    stage.run(f"{setting}{str(by_broker).lower()}")
    try:
        group = stage.names["RESET_GROUP"] = unique("Reset")
        stage.consume_for_good("RESET_GROUP")
        consumer = stage.clients.push_consumer(group, stage.names["TOPIC"])
        wait_until(lambda: consumer.assigned() == [0, 1, 2, 3], "the consumer has its queues")
        marks = {stage.send(f"{group} {number}", number) for number in range(4)}
        consumer.wait_bodies(marks)
        assert stage.run("resetOffsetByTime -g RESET_GROUP -t TOPIC -s 0").count(BROKER_NAME) >= 4
        consumer.wait_bodies(set(BODIES))
    finally:
        stage.run(f"{setting}true")
