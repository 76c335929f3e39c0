"""The present version on the configuration and the store of each released one: all is there, and more goes in.

What is left passes the store's checks with the release's sizes of files.
"""

from __future__ import annotations

import json
import tarfile
from pathlib import Path
from typing import Any

from twisted.internet import reactor
from twisted.internet.task import deferLater
from twisted.trial.unittest import TestCase

from tests.upgrade.released import HERE, Asked, started
from twisted_mq.protocol.codes import RequestCode
from twisted_mq.protocol.layouts.index import IndexSizes
from twisted_mq.protocol.layouts.record_codec import iterate_messages
from twisted_mq.storage.check import check_store

VERSIONS = sorted(one.name for one in HERE.iterdir() if (one / "broker.conf").exists())
SIZES = IndexSizes(slots=100, entries=400)
MOST_BYTES = 300 * 1024


class ReleasedStoresTest(TestCase):
    timeout = 120

    async def pulled(self, asked: Asked, topic: str, queue_id: str) -> list[str]:
        """All bodies of a queue."""
        bodies: list[str] = []
        fields = {"consumerGroup": "Reader", "topic": topic, "queueId": queue_id, "maxMsgNums": "32", "sysFlag": "4",
                  "commitOffset": "0", "suspendTimeoutMillis": "0", "subscription": "*", "subVersion": "0"}  # fmt: skip
        while len(bodies) < await self.end(asked, topic, queue_id):
            answer = await asked.ask(RequestCode.PULL_MESSAGE, {**fields, "queueOffset": str(len(bodies))})
            bodies += [message.body.decode() for message in iterate_messages(answer.body)]
        return bodies

    async def end(self, asked: Asked, topic: str, queue_id: str) -> int:
        answer = await asked.ask(RequestCode.GET_MAX_OFFSET, {"topic": topic, "queueId": queue_id})
        return int(answer.ext_fields["offset"])

    async def until_delivered(self, asked: Asked, expected: dict[str, Any]) -> None:
        """The delayed message waited for a later start, and is due long since."""
        expected["bodies"]["0"].append(expected["delayed"])
        while await self.end(asked, expected["topic"], "0") < len(expected["bodies"]["0"]):
            await deferLater(reactor, 0.05)

    async def look(self, asked: Asked, expected: dict[str, Any], more: list[str]) -> None:
        """All that was there, and what was sent since."""
        for queue_id, bodies in expected["bodies"].items():
            added = more if queue_id == "0" else []
            self.assertEqual(await self.pulled(asked, expected["topic"], queue_id), bodies + added)
        for queue_id, offset in expected["committed"].items():
            fields = {"consumerGroup": expected["group"], "topic": expected["topic"], "queueId": queue_id}
            answer = await asked.ask(RequestCode.QUERY_CONSUMER_OFFSET, fields)
            self.assertEqual(answer.ext_fields["offset"], str(offset))
        query = {"topic": expected["topic"], "key": expected["key"], "maxNum": "9", "beginTimestamp": "0",
                 "endTimestamp": str(2**62)}  # fmt: skip
        found = await asked.ask(RequestCode.QUERY_MESSAGE, query)
        self.assertEqual(len(list(iterate_messages(found.body))), 1)
        static = await asked.ask(RequestCode.GET_TOPIC_CONFIG, {"topic": expected["static"], "lo": "true"})
        self.assertIn(b'"hostedQueues":{0:[', static.body)
        await asked.ask(RequestCode.GET_SUBSCRIPTIONGROUP_CONFIG, {"group": expected["group"]})

    async def test_the_present_version_goes_on_where_a_released_one_stopped(self) -> None:
        self.assertIn("0.1.0", VERSIONS)
        for version in VERSIONS:
            folder = HERE / version
            self.assertLess((folder / "store.tar.xz").stat().st_size, MOST_BYTES)
            expected = json.loads((folder / "expected.json").read_text())
            work = Path(self.mktemp())
            with tarfile.open(folder / "store.tar.xz") as archive:
                archive.extractall(work, filter="data")
            more: list[str] = []
            for turn in ("first", "second"):
                broker = await started(folder / "broker.conf", work / "store")
                try:
                    asked = Asked(broker)
                    if turn == "first":
                        await self.until_delivered(asked, expected)
                    await self.look(asked, expected, more)
                    await asked.send(expected["topic"], 0, turn)
                    more.append(turn)
                    await self.look(asked, expected, more)
                    await asked.close()
                finally:
                    await broker.stopService()
            self.assertEqual(check_store(str(work / "store"), index_sizes=SIZES), [])
