"""Makes what tests/upgrade/VERSION has, once for each release: .venv/bin/python -m tests.upgrade.make VERSION

A broker of the sources at hand runs on the broker.conf that lies there, is given messages, offsets and settings of each
kind, and stops; its store is packed, and what a reader has to find is written beside it.
"""

from __future__ import annotations

import json
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Any

from twisted.internet import defer, task

from tests.upgrade.released import HERE, Asked, started
from twisted_mq.broker.service import BrokerService
from twisted_mq.protocol.bodies import TopicQueueMappingDetail, encode_body
from twisted_mq.protocol.bodies.static_topic import LogicQueueMappingItem
from twisted_mq.protocol.codes import RequestCode

TOPIC, GROUP, STATIC = "Orders", "Audit", "Spread"
DELAYED, A_MINUTE = "later", "5"
"""Sent last, and delivered by the version that takes the store over; its delay level is longer than the broker still runs."""
TOPIC_FIELDS = {
    "defaultTopic": "TBW102",
    "perm": "6",
    "topicFilterType": "SINGLE_TAG",
    "topicSysFlag": "0",
    "order": "false",
}


async def fill(broker: BrokerService) -> dict[str, Any]:
    """Fill the store, and return its contents."""
    asked = Asked(broker)
    queues = {"readQueueNums": "2", "writeQueueNums": "2"}
    await asked.ask(RequestCode.UPDATE_AND_CREATE_TOPIC, {"topic": TOPIC, **queues, **TOPIC_FIELDS})
    group = {"groupName": GROUP, "retryQueueNums": 2, "consumeEnable": True}
    await asked.ask(RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, {}, json.dumps(group).encode())
    piece = LogicQueueMappingItem(gen=0, queue_id=0, bname=broker.options.broker_name)
    mapping = TopicQueueMappingDetail(
        topic=STATIC, total_queues=1, bname=broker.options.broker_name, epoch=1, hosted_queues={0: [piece]}
    )
    static = {"topic": STATIC, "readQueueNums": "1", "writeQueueNums": "1", "force": "false", **TOPIC_FIELDS}
    await asked.ask(RequestCode.UPDATE_AND_CREATE_STATIC_TOPIC, static, encode_body(mapping))
    bodies: dict[str, list[str]] = {"0": [], "1": []}
    for number in range(60):
        body = f"order {number} " + "x" * (number * 20)
        await asked.send(TOPIC, number % 2, body, KEYS=f"key-{number}", TAGS="even" if number % 4 == 0 else "odd")
        bodies[str(number % 2)].append(body)
    await asked.send(TOPIC, 0, DELAYED, DELAY=A_MINUTE)
    await asked.send(STATIC, 0, "logical")
    commit = {"consumerGroup": GROUP, "topic": TOPIC, "queueId": "1", "commitOffset": "7"}
    await asked.ask(RequestCode.UPDATE_CONSUMER_OFFSET, commit)
    await asked.close()
    return {"topic": TOPIC, "bodies": bodies, "group": GROUP, "committed": {"1": 7}, "static": STATIC, "key": "key-42",
            "delayed": DELAYED}  # fmt: skip


async def make(version: str) -> None:
    folder = HERE / version
    with tempfile.TemporaryDirectory() as temporary:
        store = Path(temporary) / "store"
        broker = await started(folder / "broker.conf", store)
        expected = await fill(broker)
        await broker.stopService()
        with tarfile.open(folder / "store.tar.xz", "w:xz") as archive:
            archive.add(store, "store")
    (folder / "expected.json").write_text(json.dumps(expected, indent=1) + "\n")


if __name__ == "__main__":
    task.react(lambda _: defer.ensureDeferred(make(sys.argv[1])))
