"""Broker and client in processes that lack what macOS and Windows lack."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.packaging.daemons import RunningDaemon, environment
from tests.support.other_systems import MACOS, WINDOWS

BROKER = """
from twisted.internet import reactor, defer
from twisted_mq.client import Message, Producer
from twisted_mq.testing import EmbeddedCluster

async def main():
    cluster = EmbeddedCluster(reactor, "store", broker_options={"flush_disk_type": "SYNC_FLUSH"})
    await cluster.start()
    producer = Producer(reactor, group="orders", namesrv=cluster.name_server)
    await producer.start()
    print((await producer.send(Message(topic="Orders", body=b"hello"))).status.name)
    await producer.stop()
    await cluster.stop()

reactor.callWhenRunning(
    lambda: defer.ensureDeferred(main()).addErrback(lambda e: e.printTraceback()).addBoth(lambda _: reactor.stop())
)
reactor.run()
"""

CLIENT = """
import sys
from twisted.internet import reactor, defer
from twisted_mq.client import (
    ConsumeFromWhere, ConsumeStatus, ConsumerOptions, Message, MessageModel, Producer, PushConsumer
)

FIRST = ConsumerOptions(
    consume_from_where=ConsumeFromWhere.FIRST_OFFSET, message_model=MessageModel.BROADCASTING
)

async def main():
    producer = Producer(reactor, group="orders", namesrv=sys.argv[1])
    await producer.start()
    print((await producer.send(Message(topic="Orders", body=b"hello" * 2000))).status.name)
    await producer.stop()
    came = defer.Deferred()

    def listen(messages, context):
        came.callback(messages[0].body)
        return ConsumeStatus.CONSUME_SUCCESS

    consumer = PushConsumer(reactor, "audit", sys.argv[1], listener=listen, options=FIRST)
    consumer.subscribe("Orders")
    await consumer.start()
    print(len(await came))
    await consumer.stop()

reactor.callWhenRunning(
    lambda: defer.ensureDeferred(main()).addErrback(lambda e: e.printTraceback()).addBoth(lambda _: reactor.stop())
)
reactor.run()
"""


def run(folder: Path, program: str, *words: str) -> tuple[str, str]:
    done = subprocess.run(
        [sys.executable, "-c", program, *words],
        cwd=folder, env=environment(folder), capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    return done.stdout, done.stderr


def test_broker_takes_messages_where_the_system_is_macos(tmp_path):
    printed, logged = run(tmp_path, MACOS + BROKER)
    assert (printed, "Traceback" in logged) == ("SEND_OK\n", False)
    assert b"hello" in (tmp_path / "store" / "commitlog" / "0".zfill(20)).read_bytes()


def test_client_sends_and_consumes_where_the_system_is_windows(tmp_path):
    words = ("mqbroker", "--embedded-namesrv", "0", "--port", "0", "--store", "store", "--bind", "127.0.0.1")
    with RunningDaemon(sys.executable, tmp_path, *words) as daemon:
        name_server = f"127.0.0.1:{daemon.wait_for('name server ready').rpartition('port=')[2]}"
        daemon.wait_for("broker registered")
        assert run(tmp_path, WINDOWS + CLIENT, name_server) == ("SEND_OK\n10000\n", "")
        assert daemon.terminate() in (0, -signal.SIGTERM)


@pytest.mark.parametrize(
    "module",
    [
        "twisted_mq.namesrv.tap",
        "twisted_mq.cli.mqadmin",
        "twisted_mq.cli.send",
        "twisted_mq.cli.consume",
        "twisted_mq.cli.frames",
        "twisted_mq.storage.files.mapped_log",
    ],
)
def test_what_needs_no_store_is_imported_where_the_system_is_windows(tmp_path, module):
    assert run(tmp_path, f"{WINDOWS}\nimport {module}") == ("", "")
