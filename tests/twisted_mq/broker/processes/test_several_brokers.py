"""Real processes: two brokers behind one supervisor are one cluster, come back after a kill, and leave no process."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from twisted_mq.blocking import Message, Producer, PushConsumer

SECONDS = 60.0
TWISTD = "from twisted.scripts.twistd import run; run()"


def until(found: Callable[[], object], what: str) -> object:
    """Ask until the answer is true, and return it."""
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        answer = found()
        if answer:
            return answer
        time.sleep(0.05)
    raise AssertionError(f"not within {SECONDS} s: {what}")


def children_of(process: int) -> list[int]:
    return [int(one) for one in Path(f"/proc/{process}/task/{process}/children").read_text().split()]


def is_there(process: int) -> bool:
    with contextlib.suppress(FileNotFoundError):
        return ") Z " not in Path(f"/proc/{process}/stat").read_text()
    return False


class Running:
    """A supervisor of two brokers with a name server, and its log."""

    def __init__(self, folder: Path) -> None:
        self.log_path = folder / "log"
        words = [
            *("--brokers", "2", "--embedded-namesrv", "0", "--port", "0", "--bind", "127.0.0.1"),
            *("--store", str(folder / "store"), "--name", "b"),
        ]
        settings = {
            "metricsExporterType": "PROM", "metricsPromExporterHost": "127.0.0.1", "metricsPromExporterPort": "0",
            "brokerIP1": "127.0.0.1", "mappedFileSizeCommitLog": "1048576",
        }  # fmt: skip
        for key, value in settings.items():
            words += ["--set", f"{key}={value}"]
        command = [sys.executable, "-c", TWISTD, "--nodaemon", "--pidfile=", "mqbroker", *words]
        with self.log_path.open("wb") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log, cwd=folder, start_new_session=True)
        self.seen: set[int] = set()

    @property
    def log(self) -> str:
        return self.log_path.read_text()

    def found(self, pattern: str) -> str:
        def look() -> str | None:
            assert self.process.poll() is None, self.log
            match = re.search(pattern, self.log)
            return match and match[1]

        return str(until(look, pattern))

    @property
    def namesrv(self) -> str:
        return "127.0.0.1:" + self.found(r"name server ready: address=127\.0\.0\.1 port=(\d+)")

    def page(self, path: str) -> tuple[int, str]:
        url = "http://127.0.0.1:" + self.found(r"metrics of all brokers at http://127\.0\.0\.1:(\d+)/") + "/" + path
        try:
            with urllib.request.urlopen(url) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as refused:
            return refused.code, refused.read().decode()

    def brokers(self) -> list[int]:
        """The processes of both brokers once both are ready."""
        until(lambda: self.page("ready")[0] == 200, "both brokers are ready")
        processes = children_of(self.process.pid)
        self.seen.update(processes)
        return processes


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Running]:
    one = Running(tmp_path)
    try:
        yield one
    finally:
        if one.process.poll() is None:
            one.process.terminate()
            one.process.wait(SECONDS)
        for process in filter(is_there, one.seen):
            os.kill(process, signal.SIGKILL)


def send_and_receive(namesrv: str, count: int, label: str) -> None:
    """Send to both brokers, and receive all of it."""
    with Producer(namesrv, group="p") as producer:
        results = [producer.send(Message("T", b"%s %d" % (label.encode(), n)), timeout=10) for n in range(count)]
    assert {one.queue.broker_name for one in results} == {"b-0", "b-1"}
    with PushConsumer(namesrv, group="c", topics={"T": "*"}) as consumer:
        bodies = set()
        for message in consumer.messages(timeout=30):
            bodies.add(message.body)
            message.ack()
            if {b"%s %d" % (label.encode(), n) for n in range(count)} <= bodies:
                return
    raise AssertionError(f"{len(bodies)} of {count} messages received")


@pytest.mark.skipif(not os.path.exists("/proc/self/task"), reason="reads Linux's list of child processes")
def test_two_brokers_are_one_cluster_and_a_killed_one_comes_back(running):
    both = running.brokers()
    assert len(both) == 2
    send_and_receive(running.namesrv, 32, "before")
    samples = dict(re.findall(r'^mq_connections\{broker="(b-\d)".*\} ([\d.]+)$', running.page("metrics")[1], re.M))
    assert set(samples) == {"b-0", "b-1"}

    os.kill(both[0], signal.SIGKILL)
    until(lambda: 'restarts_total{broker="b-0"} 1.0' in running.page("metrics")[1]
          or 'restarts_total{broker="b-1"} 1.0' in running.page("metrics")[1], "a restart")  # fmt: skip
    after = running.brokers()
    assert len(set(after) & set(both)) == 1
    assert "ended by signal 9; starting again in 1.0 s" in running.log
    send_and_receive(running.namesrv, 32, "after")

    namesrv = running.namesrv
    running.process.terminate()
    assert running.process.wait(SECONDS) == -signal.SIGTERM
    assert not any(is_there(one) for one in running.seen)
    name_server_closed = running.log.index(f"(TCP Port {namesrv.rpartition(':')[2]} Closed)")
    assert running.log.rindex(" stopped\n") < name_server_closed
    assert sorted(re.findall(r"b-\d: broker (b-\d) stopped", running.log)) == ["b-0", "b-1"]
    assert "Unhandled" not in running.log


@pytest.mark.skipif(not os.path.exists("/proc/self/task"), reason="reads Linux's list of child processes")
def test_brokers_stop_cleanly_when_their_supervisor_is_killed(running, tmp_path):
    both = running.brokers()
    assert json.loads(running.page("health")[1]) == {"ok": True, "wrong": []}
    running.process.kill()
    running.process.wait()
    until(lambda: not any(is_there(one) for one in both), "the brokers end")
    assert [one.name for one in sorted((tmp_path / "store").glob("b-*"))] == ["b-0", "b-1"]
    assert not list((tmp_path / "store").glob("*/abort"))
