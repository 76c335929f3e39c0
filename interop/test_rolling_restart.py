"""Two masters are restarted one after the other under load through each face: no send fails, and every message comes."""

from __future__ import annotations

import json
import os
import re
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from interop.peers.process import Process, wait_until
from interop.peers.servers import GET_ROUTEINFO_BY_TOPIC, Cluster, ask, running

pytestmark = pytest.mark.peer

ROOT = Path(__file__).resolve().parents[1]
FACES = ("deferred", "asyncio", "blocking")
CLIENTS = 2
"""A process has a client for its producer and one for its consumer: each tells an outage by two lines."""
REST_SECONDS = 2.0
"""Between two restarts, and before the first: load meets both brokers."""


class SecondMaster(Cluster):
    """A broker more for the name server of another cluster."""

    def start(self) -> None:
        (self.directory / "home").mkdir(parents=True)
        self._file("broker.conf", {**self._broker_settings(), **self.settings, "brokerName": "broker-b"})
        self.start_broker()


@pytest.fixture
def masters(tmp_path: Path) -> Iterator[tuple[Cluster, Cluster]]:
    with running(Cluster("ours", tmp_path / "a")) as first:
        second = SecondMaster("ours", tmp_path / "b", name_server_port=first.name_server_port)
        with running(second):
            yield first, second


def made(topic: str, masters: tuple[Cluster, Cluster]) -> None:
    """Have the topic on both brokers, and return once the name server says so."""
    for master in masters:
        fields = {"topic": topic, "defaultTopic": "TBW102", "readQueueNums": "2", "writeQueueNums": "2", "perm": "6"}
        ask(master.broker_port, 17, {**fields, "topicFilterType": "SINGLE_TAG", "topicSysFlag": "0", "order": "false"})
    port = masters[0].name_server_port
    for name in (b"broker-a", b"broker-b"):
        wait_until(lambda name=name: name in ask(port, GET_ROUTEINFO_BY_TOPIC, {"topic": topic}), f"route of {topic}")


def test_no_send_fails_and_every_message_comes(masters: tuple[Cluster, Cluster], tmp_path: Path) -> None:
    namesrv = masters[0].name_server
    loads = {}
    for face in FACES:
        made(f"Rolling_{face}", masters)
        (tmp_path / face).mkdir()
        command = [
            sys.executable,
            "-m",
            "interop.peers.rolling_load",
            face,
            namesrv,
            f"Rolling_{face}",
            str(tmp_path / face),
        ]
        loads[face] = Process.start(command, tmp_path / f"{face}.log", ROOT, env=os.environ | {"PYTHONPATH": str(ROOT)})
    try:
        for face in FACES:
            wait_until((tmp_path / face / "consumes").exists, f"the load of {face}", seconds=120)
        for master in masters:
            time.sleep(REST_SECONDS)
            master.stop_broker()
            master.start_broker()
        time.sleep(REST_SECONDS)
        for face in FACES:
            (tmp_path / face / "stop").touch()
        for face, load in loads.items():
            assert load.child.wait(120) == 0, load.output_tail()
            seen = json.loads(load.output().splitlines()[-1])
            assert (seen["failed"], seen["missing"]) == ({}, []), face
            assert seen["sent"] > 100, face
            told = Counter(re.findall(r"WARNING (not reached|reached again)", load.output()))
            assert told == {"not reached": CLIENTS * 2, "reached again": CLIENTS * 2}, load.output()
    finally:
        for load in loads.values():
            load.kill()
