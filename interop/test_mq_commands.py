"""Commands of `mq` against Apache's servers and this project's: the same answers, and a copy of a store that is in use."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from interop.peers.clients import unique
from interop.peers.servers import CLUSTER_NAME, Cluster

MQ = [sys.executable, "-c", "from twisted_mq.cli.mq import main; main()"]


def run(cluster: Cluster, *words: str) -> str:
    """Return the output of the command. On a slow machine Apache's name server sometimes loses its broker for some time."""
    cluster.wait_registered()
    environment = {**os.environ, "NAMESRV_ADDR": cluster.name_server, "NO_COLOR": "1"}
    done = subprocess.run([*MQ, *words], env=environment, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def lines(text: str) -> list[Any]:
    return [json.loads(line) for line in text.splitlines()]


def test_commands_say_the_same_of_both_kinds_of_servers(cluster: Cluster, tmp_path: Path) -> None:
    cluster.wait_registered()
    topic, group = unique("Topic"), unique("group")
    run(cluster, "admin", "updateTopic", "-c", CLUSTER_NAME, "-t", topic, "-r", "4", "-w", "4")
    cluster.wait_route(topic)
    sent = lines(run(cluster, "send", topic, "one", "--queue", "2", "--keys", "k1", "--json"))
    assert [(one["status"], one["queueId"]) for one in sent] == [("SEND_OK", 2)]
    assert run(cluster, "consume", topic, "--group", group, "--from", "earliest", "--count", "1", "--raw") == "one\n"
    checks = lines(run(cluster, "doctor", "--json"))
    assert {"connection", "advertised address", "clock", "disk", "safety", "version", "routes"} <= {
        check["check"] for check in checks
    }
    assert [check for check in checks if check["result"] in ("problem", "unknown")] == []
    rows = lines(run(cluster, "bench", topic, "--count", "300", "--consumers", "1", "--json"))
    assert [(row["what"], row["messages"], row["errors"]) for row in rows] == [("sent", 300, 0), ("consumed", 300, 0)]
    shown = lines(run(cluster, "top", "--once", "--interval", "0.2", "--match", topic, "--json"))
    assert [(row["topic"], row["messages"]) for row in shown if row["kind"] == "topic"] == [(topic, 302)]
    made = json.loads(run(cluster, "backup", str(cluster.store), str(tmp_path / "copy"), "--json"))
    assert made["sound"] and made["messages"] >= 302
    replayed = run(cluster, "replay", topic, "--store", str(tmp_path / "copy"), "--to", topic, "--key", "k1", "--json")
    assert json.loads(replayed)["messages"] == 1
    assert len(lines(run(cluster, "peek", topic, "--count", "1000", "--json"))) == 303
