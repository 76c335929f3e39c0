"""Log lines of a program and of the daemons, in separate processes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.packaging.daemons import RunningDaemon, environment, wait_until

BROKER = ("mqbroker", "--embedded-namesrv", "0", "--port", "0", "--store", "store", "--bind", "127.0.0.1")

CLIENT = """
import logging
from twisted.internet import reactor
from twisted.internet.defer import ensureDeferred
from twisted_mq.client import Message, Producer

logging.basicConfig(level=logging.INFO, format="%(levelname)s %(name)s %(message)s")

async def main():
    producer = Producer(reactor, group="g", namesrv="127.0.0.1:1")
    await producer.start()
    try:
        await producer.send(Message("T", b"x"))
    except Exception as error:
        print(type(error).__name__)
    await producer.stop()
    reactor.stop()

reactor.callWhenRunning(lambda: ensureDeferred(main()))
reactor.run()
"""


def test_plain_program_sees_the_clients_lines_by_basic_config_alone(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", CLIENT], cwd=tmp_path, env=environment(tmp_path), capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "NameServerUnreachable\n"
    expected = "INFO twisted_mq.routing.name_servers name server does not answer: address=127.0.0.1:1 "
    assert done.stderr.startswith(expected)


@pytest.fixture
def damaged_store(tmp_path: Path) -> Path:
    """The working directory, with a store whose topics cannot be read: a warning of storage."""
    config = tmp_path / "store" / "config"
    config.mkdir(parents=True)
    (config / "topics.json").write_text("{")
    return tmp_path


def assert_lines_of_broker_and_storage(lines: list[str]) -> None:
    heads = [line.split("] ")[0].partition("[")[2] for line in lines if "[" in line]
    assert {"twisted_mq.storage.files.json_file#warn", "twisted_mq.storage.message_store#info"} <= set(heads)
    assert "twisted_mq.broker.service#info" in heads
    assert [line for line in lines if "stderr" in line or "stdout" in line] == []


def test_broker_in_the_foreground_writes_all_lines_under_their_own_names(damaged_store):
    with RunningDaemon(sys.executable, damaged_store, *BROKER) as daemon:
        daemon.wait_for("registers as")
        daemon.terminate()
    assert_lines_of_broker_and_storage(daemon.lines)


def test_broker_writes_all_lines_into_its_log_file(damaged_store):
    with RunningDaemon(sys.executable, damaged_store, "--logfile=it.log", *BROKER) as daemon:
        log = damaged_store / "it.log"
        wait_until(lambda: log.exists() and "registers as" in log.read_text())
        daemon.terminate()
    assert daemon.lines == []
    assert_lines_of_broker_and_storage(log.read_text().splitlines())


def test_broker_writes_lines_of_json_where_it_is_told_to(damaged_store):
    with RunningDaemon(sys.executable, damaged_store, *BROKER, "--set", "logFormat=json") as daemon:
        daemon.wait_for("registers as")
        daemon.terminate()
    lines = [json.loads(line) for line in daemon.lines if line.startswith("{")]
    registers = next(line for line in lines if "registers as" in line["text"])
    assert (registers["level"], registers["logger"]) == ("info", "twisted_mq.broker.service")
    assert registers["address"] in registers["text"]
    assert {line["logger"] for line in lines} >= {
        "twisted_mq.storage.files.json_file",
        "twisted_mq.storage.message_store",
    }
