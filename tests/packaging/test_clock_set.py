"""Real servers and clients whose clock is set by an hour, or drifts, while they run: nothing stops."""

from __future__ import annotations

import contextlib
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.packaging.daemons import RunningDaemon, environment
from tests.packaging.test_daemons import LOCAL
from tests.support.shifted_clock import ShiftedClock

BROKER = ("mqbroker", "--embedded-namesrv", "0", "--port", "0", "--store", "store", *LOCAL)

DRIFT_STEP_SECONDS = 0.05
CLIENT = """
import queue, sys
from twisted_mq.blocking import Message, Producer, PushConsumer

namesrv, came = sys.argv[1], queue.Queue()
with Producer(namesrv, group="p") as producer, PushConsumer(namesrv, group="g", topics={"T": "*"}) as consumer:
    for line in sys.stdin:
        word = line.strip()
        for kind, properties in (("now", {}), ("level", {"DELAY": "2"}), ("timer", {"TIMER_DELAY_SEC": "4"})):
            producer.send(Message("T", f"{word} {kind}".encode(), properties=properties), timeout=30)
        wanted = {f"{word} {kind}" for kind in ("now", "level", "timer")}
        for message in consumer.messages(timeout=90):
            message.ack()
            wanted.discard(message.body.decode())
            if not wanted:
                break
        print(word, "missing", sorted(wanted), flush=True)
"""
"""Sends at once, by delay level and by timer when told a word, and waits for all three."""


@contextlib.contextmanager
def served(folder: Path, wrong: dict[str, str], shifted: str) -> Iterator[Callable[[str], str]]:
    """Servers and a client, one of them with the wrong clock. What is returned sends three messages and waits for them."""
    with RunningDaemon(sys.executable, folder, *BROKER, more=wrong if shifted == "server" else {}) as daemon:
        ready = daemon.wait_for("name server ready")
        daemon.wait_for("broker registered")
        port = re.search(r"port=(\d+)", ready)
        assert port is not None
        client = subprocess.Popen(
            [sys.executable, "-c", CLIENT, f"127.0.0.1:{port[1]}"],
            env={**environment(folder), **(wrong if shifted == "client" else {})},
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        with client:
            assert client.stdin is not None
            assert client.stdout is not None

            def say(word: str) -> str:
                assert client.stdin is not None
                assert client.stdout is not None
                print(word, file=client.stdin, flush=True)
                return client.stdout.readline()

            yield say
            client.stdin.close()
        assert client.returncode == 0


@pytest.mark.parametrize("hours", [-1, 1], ids=["back", "forward"])
@pytest.mark.parametrize("shifted", ["server", "client"])
def test_messages_come_after_the_clock_was_set(tmp_path: Path, shifted: str, hours: int) -> None:
    clock = ShiftedClock(tmp_path / "clock")
    with served(tmp_path, clock.environment(), shifted) as say:
        for word in ("before", "after"):
            assert say(word) == f"{word} missing []\n"
            clock.shift_wall(hours * 3600)


@pytest.mark.parametrize("rate", [-1.2, 1.0], ids=["backwards", "twice as fast"])
def test_messages_come_while_the_servers_clock_drifts(tmp_path: Path, rate: float) -> None:
    """Far more than a bad clock does, so that seconds show what hours would: a timer that follows this clock never comes due."""
    clock = ShiftedClock(tmp_path / "clock")
    ended = threading.Event()

    def drift() -> None:
        while not ended.wait(DRIFT_STEP_SECONDS):
            clock.shift_wall(rate * DRIFT_STEP_SECONDS)

    drifting = threading.Thread(target=drift)
    with served(tmp_path, clock.environment(), "server") as say:
        drifting.start()
        try:
            for word in ("first", "second"):
                assert say(word) == f"{word} missing []\n"
        finally:
            ended.set()
            drifting.join()
