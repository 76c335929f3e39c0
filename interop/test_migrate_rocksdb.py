"""Stores of Apache's broker with queues and tables in RocksDB, made into files by `mq migrate`: nothing is missing."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from interop.peers.process import wait_until
from interop.peers.requirements import require_java
from interop.peers.servers import Cluster, ask, running
from twisted_mq.blocking import Admin, Message, Producer, PushConsumer

pytestmark = pytest.mark.peer

TOPIC, GROUP, QUEUES = "Orders", "audit", 4
MQ = str(Path(sys.executable).with_name("mq"))
VERSIONS = {
    "queues and tables of v1": {"storeType": "defaultRocksDB", "configManagerVersion": "v1"},
    "queues and tables of v2": {"storeType": "defaultRocksDB", "configManagerVersion": "v2"},
}


@pytest.mark.parametrize("settings", list(VERSIONS.values()), ids=list(VERSIONS))
def test_a_store_in_rocksdb_goes_on_in_files(settings: dict[str, str], tmp_path: Path) -> None:
    require_java()
    apache = Cluster("apache", tmp_path / "apache", settings=settings)
    with running(apache):
        create = {"topic": TOPIC, "defaultTopic": "TBW102", "readQueueNums": str(QUEUES), "writeQueueNums": str(QUEUES),
                  "perm": "6", "topicFilterType": "SINGLE_TAG", "topicSysFlag": "0", "order": "false"}  # fmt: skip
        ask(apache.broker_port, 17, create)
        ask(apache.broker_port, 200, body=json.dumps({"groupName": GROUP, "retryMaxTimes": 7}).encode())
        apache.wait_route(TOPIC)
        with Producer(apache.name_server, group="shop") as producer:
            for number in range(20):
                producer.send(Message.make(TOPIC, b"%d" % number, None, f"key-{number}"))
        with PushConsumer(apache.name_server, group=GROUP, topics={TOPIC: "*"}) as consumer:
            for number, message in enumerate(consumer.messages(timeout=60), 1):
                message.ack()
                if number == 20:
                    break
        with Producer(apache.name_server, group="shop") as producer:
            for number in range(20, 30):
                producer.send(Message(TOPIC, b"%d" % number))
        assert apache.stop_broker() in (0, 143)
    target = tmp_path / "ours" / "store"
    done = subprocess.run([MQ, "migrate", str(apache.store), str(target), "--json"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    ours = Cluster("ours", tmp_path / "ours")
    with running(ours):
        wait_until(lambda: ours.wait_route(TOPIC) is None, "route")
        with Admin(ours.name_server) as admin:
            assert admin.describe_group(GROUP).retry_max_times == 7
            assert sum(one.waiting for one in admin.lag(GROUP, TOPIC)) == 10
        taken = []
        with PushConsumer(ours.name_server, group=GROUP, topics={TOPIC: "*"}) as consumer:
            for message in consumer.messages(timeout=60):
                taken.append(int(message.body))
                message.ack()
                if len(taken) == 10:
                    break
        assert sorted(taken) == list(range(20, 30))
