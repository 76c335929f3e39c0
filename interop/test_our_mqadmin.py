"""Our mqadmin beside Apache's, on both clusters: the same command prints the same text."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable

import pytest

from interop.peers.clients import Clients, JavaPeer
from interop.peers.servers import CLUSTER_NAME, Cluster

pytestmark = pytest.mark.peer

OURS = [sys.executable, "-c", "from twisted_mq.cli.mqadmin import main; main()"]
MOVING_FIGURE = re.compile(r" *-?\d+\.\d\d\b")
"""Rates and ages in clusterList, which move on between two commands."""

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
