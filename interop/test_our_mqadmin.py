"""Our mqadmin beside Apache's, on both clusters: the same command prints the same text."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from interop.peers.clients import Clients, JavaPeer, OurPeer, unique
from interop.peers.servers import BROKER_NAME, CLUSTER_NAME, Cluster
from twisted_mq.cli.admin.registry import SubCommand, sub_commands

pytestmark = pytest.mark.peer

OURS = [sys.executable, "-c", "from twisted_mq.cli.mqadmin import main; main()"]
MOVING_FIGURE = re.compile(r" *-?\d+\.\d\d(?:\d\d)?\b| *\d+-\d+\([\d.]+w, [\d.]+, [\d.]+\) *")
"""Rates, ages, the disk's use and the timer's state in clusterList, which move on between two commands."""

OPTION = re.compile(r"^ (?:-(\w+),|   )--([\w ]+?)(?: <arg>| {2}|$)", re.MULTILINE)
"""A line of Apache's help: the letters of an option and its long name, some with a blank inside or at the end."""

Both = Callable[..., tuple[list[str], list[str]]]


@pytest.fixture
def both(java: JavaPeer, cluster: Cluster) -> Both:
    """Runs one command with Apache's tool, then with ours; the lines that each printed."""

    def run(name: str, *arguments: str) -> tuple[list[str], list[str]]:
        line = [name, "-n", cluster.name_server, *arguments]
        ours = subprocess.run([*OURS, *line], capture_output=True, text=True, check=True, timeout=60)
        return java.mqadmin(*line).strip("\n").split("\n"), ours.stdout.strip("\n").split("\n")

    return run


@pytest.mark.parametrize(
    "command",
    [
        "topicList",
        "topicList -c",
        "topicRoute -t TOPIC",
        "topicRoute -t TOPIC -l",
        "topicRoute --list --topic TOPIC",
        "topicStatus -t TOPIC",
        f"topicStatus -t TOPIC -c {CLUSTER_NAME}",
        "clusterList -m",
        "clusterList -c nosuch",
    ],
)
def test_a_question_is_answered_in_the_same_words(both: Both, java_clients: Clients, topic: str, command: str) -> None:
    java_clients.producer().send_all(topic, [f"message {number}" for number in range(6)])
    words = command.replace("TOPIC", topic).split()
    apache, ours = both(*words)
    if ours != apache:  # the servers were still dispatching or registering between the two
        apache, ours = both(*words)
    assert ours == apache


def test_cluster_list_has_the_same_columns(both: Both) -> None:
    apache, ours = both("clusterList")
    assert [MOVING_FIGURE.sub(" N", line) for line in ours] == [MOVING_FIGURE.sub(" N", line) for line in apache]


def test_a_change_of_a_topic_is_confirmed_in_the_same_words(both: Both, cluster: Cluster, topic: str) -> None:
    for where in (["-b", cluster.broker], ["-c", CLUSTER_NAME]):
        for more in ([], ["-r", "3", "-w", "2", "-p", "4"], ["-o", "true", "-a", "+message.type=FIFO"]):
            apache, ours = both("updateTopic", *where, "-t", topic, *more)
            assert ours == apache
    apache, ours = both("deleteTopic", "-c", CLUSTER_NAME, "-t", topic)
    assert ours == apache


@pytest.mark.parametrize("command", sub_commands(), ids=lambda command: command.name)
def test_every_subcommand_has_apaches_name_and_options(java: JavaPeer, command: SubCommand) -> None:
    printed = java.mqadmin("help", command.name)
    apaches = {(found[1] or "", found[2].strip()) for found in OPTION.finditer(printed)}
    assert apaches == {(one.short, one.long.strip()) for one in command.all_options if not one.ours}


def test_there_are_no_other_subcommands(java: JavaPeer) -> None:
    """The machine has listed them once more with each command that it ran."""
    names = dict.fromkeys(re.findall(r"^   (\w+) ", java.mqadmin(), re.MULTILINE))
    assert [*names] == [command.name for command in sub_commands()]


def test_a_static_topic_grows_by_either_tool(
    java: JavaPeer, cluster: Cluster, our_client_process: OurPeer, tmp_path: Path
) -> None:
    """Settings written by one tool are valid for the other one."""
    topic = unique("Static")

    def words(name: str, *more: str) -> tuple[str, ...]:
        return (name, "-n", cluster.name_server, "-b", BROKER_NAME, "-t", topic, *more)

    def ours(name: str, *more: str) -> dict[str, str]:
        return our_client_process.mqadmin(*words(name, *more), directory=tmp_path)

    first = ours("updateStaticTopic", "-qn", "2")
    assert (first["out"].count("mapping data is written to file"), first["err"]) == (2, "")
    printed = java.mqadmin(*words("updateStaticTopic", "-qn", "4"))
    assert ("The new mapping data" in printed, "Exception" in printed) == (True, False)
    assert ours("updateStaticTopic", "-qn", "6")["err"] == ""
    assert "only grows" in ours("updateStaticTopic", "-qn", "6")["err"]
    printed = java.mqadmin(*words("remappingStaticTopic"))
    assert ("mapping data is written" in printed, "Exception" in printed) == (True, False)
    assert ours("remappingStaticTopic")["err"] == ""
    routed = our_client_process.mqadmin(
        "topicRoute", "-n", cluster.name_server, "-t", topic, "--json", directory=tmp_path
    )
    assert json.loads(routed["out"])["topicQueueMappingByBroker"][BROKER_NAME]["totalQueues"] == 6
