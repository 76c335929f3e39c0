"""pytest's plugin in runs of its own: each scope, several workers, and a run that does without it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PLUGIN = ["-p", "twisted_mq.testing.fixtures"]

ROUND_TRIP = """
from twisted_mq.client import Message

def test_first(mq_server, mq_topic):
    mq_server.send(Message(mq_topic, b"one"))
    assert [message.body for message in mq_server.messages(mq_topic)] == [b"one"]
    print("SERVER", mq_server.namesrv, mq_topic)

def test_second(mq_server, mq_topic):
    assert mq_server.messages(mq_topic) == []
    print("SERVER", mq_server.namesrv, mq_topic)
"""


def run(folder: Path, test: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    (folder / "test_it.py").write_text(test)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    environment.pop("PYTEST_ADDOPTS", None)
    command = [sys.executable, "-m", "pytest", *PLUGIN, "-q", "-p", "no:cacheprovider", *arguments, "test_it.py"]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120)


def passed(done: subprocess.CompletedProcess[str], count: int) -> bool:
    return done.returncode == 0 and f"{count} passed" in done.stdout


def servers(done: subprocess.CompletedProcess[str]) -> list[list[str]]:
    return [line.split()[-2:] for line in done.stdout.splitlines() if "SERVER" in line]


@pytest.mark.parametrize(
    ("scope", "shared"),
    [("session", True), ("package", True), ("module", True), ("class", False), ("function", False)],
)
def test_tests_share_a_server_as_far_as_the_scope_goes(tmp_path: Path, scope: str, shared: bool) -> None:
    done = run(tmp_path, ROUND_TRIP, "-s", "--mq-scope", scope)
    assert passed(done, 2), done.stdout + done.stderr
    (first, first_topic), (second, second_topic) = servers(done)
    assert (first == second) is shared
    assert first_topic.startswith("test_first-")
    assert second_topic.startswith("test_second-")


def test_the_ini_file_chooses_where_the_command_line_does_not(tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\nmq_scope = function\nmq_store = memory\n")
    test = """
import os

def test_first(mq_server):
    assert not os.path.exists(os.path.join(mq_server.store_path, "commitlog"))
    print("SERVER", mq_server.namesrv, "-")

def test_second(mq_server):
    print("SERVER", mq_server.namesrv, "-")
"""
    done = run(tmp_path, test, "-s")
    assert passed(done, 2), done.stdout + done.stderr
    first, second = servers(done)
    assert first != second
    done = run(tmp_path, test.replace("not os", "os"), "-s", "--mq-scope", "session", "--mq-store", "file")
    assert passed(done, 2), done.stdout + done.stderr
    first, second = servers(done)
    assert first == second


def test_an_unknown_choice_in_the_ini_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\nmq_store = disk\n")
    done = run(tmp_path, ROUND_TRIP)
    assert done.returncode == 1
    assert "mq_store = disk: choose one of file, memory" in done.stdout


def test_each_worker_of_xdist_has_its_own_server(tmp_path: Path) -> None:
    test = """
import pathlib
import pytest
from twisted_mq.client import Message

@pytest.mark.parametrize("number", range(4))
def test_it(mq_server, mq_topic, number, worker_id):
    mq_server.send(Message(mq_topic, b"one"))
    assert [message.body for message in mq_server.messages(mq_topic)] == [b"one"]
    with open(f"{worker_id}.servers", "a") as file:
        file.write(mq_server.namesrv + "\\n")
"""
    done = run(tmp_path, test, "-n", "2")
    assert passed(done, 4), done.stdout + done.stderr
    by_worker = [set(path.read_text().split()) for path in sorted(tmp_path.glob("*.servers"))]
    assert [len(addresses) for addresses in by_worker] == [1, 1]
    assert by_worker[0] != by_worker[1]


def test_a_run_that_uses_no_fixture_loads_nothing(tmp_path: Path) -> None:
    test = """
import sys

def test_it():
    heavy = ("twisted", "numpy", "attr", "construct", "twisted_mq.client", "twisted_mq.testing.server")
    assert [name for name in heavy if name in sys.modules] == []
"""
    done = run(tmp_path, test, "-p", "no:hypothesispytest", "-p", "no:asyncio", "-p", "no:xdist", "-p", "no:anyio")
    assert passed(done, 1), done.stdout + done.stderr


def test_the_fixtures_say_what_they_are(tmp_path: Path) -> None:
    done = run(tmp_path, ROUND_TRIP, "--fixtures")
    for fixture in ("mq_server", "mq_topic", "mq_producer", "mq_consumer"):
        assert f"{fixture} " in done.stdout.replace("[", " [")
    assert "--mq-scope" in run(tmp_path, ROUND_TRIP, "--help").stdout


FACES = """
import asyncio
import pytest
from twisted_mq import aio
from twisted_mq.blocking import Message

def test_plain_calls(mq_server, mq_topic, mq_producer, mq_consumer):
    mq_producer.send(Message(mq_topic, b"one"))
    message = next(mq_consumer.messages(timeout=60))
    message.ack()
    mq_server.wait_until_consumed(mq_topic, f"mq_consumer-{mq_topic}", timeout=60)
    assert message.body == b"one"

@pytest.mark.asyncio
async def test_awaited_calls(mq_server, mq_topic):
    from_the_start = aio.ConsumerOptions(consume_from_where=aio.ConsumeFromWhere.FIRST_OFFSET)
    async with aio.Producer(mq_server.namesrv, group="shop") as producer:
        await producer.send(Message(mq_topic, b"one"))
    topics = {mq_topic: "*"}
    async with aio.PushConsumer(mq_server.namesrv, group="audit", topics=topics, options=from_the_start) as consumer:
        async for message in consumer:
            await message.ack()
            break
        await asyncio.to_thread(mq_server.wait_until_consumed, mq_topic, "audit", 60)
    assert message.body == b"one"
"""


@pytest.mark.parametrize("scope", ["session", "function"])
def test_clients_of_both_faces_meet_the_server(tmp_path: Path, scope: str) -> None:
    done = run(tmp_path, FACES, "--mq-scope", scope)
    assert passed(done, 2), done.stdout + done.stderr


CASE = """
import unittest
from twisted.trial import unittest as trial
from twisted_mq.client import Message, Producer
from twisted_mq.testing import BrokerMixin

class Plain(BrokerMixin, unittest.TestCase):
    mq_settings = {"store": "memory"}

    def test_it(self):
        self.mq_server.send(Message(self.mq_topic, b"one"))
        self.assertEqual([message.body for message in self.mq_server.messages(self.mq_topic)], [b"one"])
        self.assertTrue(self.mq_topic.startswith("test_it-"))

class Deferring(BrokerMixin, trial.TestCase):
    async def test_it(self):
        from twisted.internet import reactor
        producer = Producer(reactor, "shop", self.mq_server.namesrv)
        await producer.start()
        self.addCleanup(producer.stop)
        await producer.send(Message(self.mq_topic, b"one"))
        self.assertEqual([message.body for message in self.mq_server.messages(self.mq_topic)], [b"one"])
"""


@pytest.mark.parametrize(
    ("runner", "told"), [(["pytest", "-q"], "2 passed"), (["twisted.trial"], "PASSED (successes=2)")]
)
def test_the_mixin_serves_unittest_and_trial(tmp_path: Path, runner: list[str], told: str) -> None:
    (tmp_path / "test_case.py").write_text(CASE)
    done = subprocess.run(
        [sys.executable, "-m", *runner, "./test_case.py"], cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert (done.returncode, told in done.stdout) == (0, True), done.stdout + done.stderr


def test_the_mixin_serves_the_standard_runner(tmp_path: Path) -> None:
    (tmp_path / "test_case.py").write_text(CASE)
    done = subprocess.run(
        [sys.executable, "-m", "unittest", "test_case.Plain"], cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": f"{ROOT}:{tmp_path}"}, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert (done.returncode, "Ran 1 test" in done.stderr) == (0, True), done.stdout + done.stderr
