"""The installed wheel in a folder whose own modules are called as ours are in the repository."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.packaging.daemons import RunningDaemon, environment

FOREIGN = ("protocol.py", "storage/__init__.py", "storage/files.py", "spark.py")
SENDER = """
import sys
import protocol, spark, storage  # the program's own
from twisted.internet import reactor, defer
from twisted_mq.client import ConsumeStatus, Message, Producer, PushConsumer

async def main():
    producer = Producer(reactor, group="orders", namesrv=sys.argv[1])
    await producer.start()
    print((await producer.send(Message(topic="Orders", body=b"hello"))).status.name)
    await producer.stop()
    came = defer.Deferred()

    def listen(messages, context):
        came.callback(messages[0].body)
        return ConsumeStatus.CONSUME_SUCCESS

    consumer = PushConsumer(reactor, "audit", sys.argv[1], listener=listen)
    consumer.subscribe("Orders")
    await consumer.start()
    print(await came)
    await consumer.stop()
    reactor.stop()

reactor.callWhenRunning(lambda: defer.ensureDeferred(main()).addErrback(lambda e: (e.printTraceback(), reactor.stop())))
reactor.run()
"""
COUNT = """
import sys
import protocol, spark, storage  # the program's own
from twisted_mq.spark.session import local_session

session = local_session("count", cores=1)
rows = session.read.format("rocketmq").load(sys.argv[1]).select("topic", "body").collect()
print([(row.topic, bytes(row.body)) for row in rows if row.topic == "Orders"])
session.stop()
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A working directory with foreign modules."""
    for name in FOREIGN:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("")
    (tmp_path / "sender.py").write_text(SENDER)
    (tmp_path / "count.py").write_text(COUNT)
    return tmp_path


def run(folder: Path, *command: str) -> str:
    done = subprocess.run(
        command, cwd=folder, env={**environment(folder), "PYTHONPATH": "."}, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture
def name_server(installed_python: str, folder: Path) -> Iterator[str]:
    """Yield the name server of a broker that runs in the folder, with its store there in `messages`."""
    words = ("mqbroker", "--embedded-namesrv", "0", "--port", "0", "--store", "messages", "--bind", "127.0.0.1")
    with RunningDaemon(installed_python, folder, *words) as daemon:
        port = daemon.wait_for("name server ready").rpartition("port=")[2]
        daemon.wait_for("broker registered")
        yield f"127.0.0.1:{port}"
        assert daemon.terminate() in (0, -signal.SIGTERM)


def test_broker_client_commands_and_spark_run_beside_foreign_modules(installed_python, folder, name_server):
    assert run(folder, installed_python, "sender.py", name_server) == "SEND_OK\nb'hello'\n"
    mq = str(Path(installed_python).with_name("mq"))
    run(folder, mq, "send", "Orders", "again", "--namesrv", name_server)
    dumped = run(folder, mq, "store", "dump", "messages", "--json", "--topic", "Orders")
    assert [json.loads(line)["bodyLength"] for line in dumped.splitlines()] == [5, 5]
    assert run(folder, installed_python, "count.py", "messages") == "[('Orders', b'hello'), ('Orders', b'again')]\n"
