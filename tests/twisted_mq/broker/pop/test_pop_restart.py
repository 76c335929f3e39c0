"""A broker with files that is stopped and started while messages are popped. Real time, over loopback."""

from __future__ import annotations

from typing import Any

from twisted.internet import reactor
from twisted.internet.defer import Deferred
from twisted.trial.unittest import TestCase

from twisted_mq.protocol.codes import RequestCode
from twisted_mq.protocol.names.system_topics import TIMER_TOPIC
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.remoting.client import RemotingClient
from twisted_mq.testing import EmbeddedCluster


class PopRestartTests(TestCase):
    timeout = 30

    async def ask(self, code: int, fields: dict[str, Any], body: bytes = b"") -> RemotingCommand:
        client = RemotingClient(reactor)
        text = {name: str(value) for name, value in fields.items()}
        try:
            return await client.invoke(self.cluster.broker_address, RemotingCommand.request(code, text, body=body), 5)
        finally:
            client.close()

    async def pop(self, topic: str, order: str) -> RemotingCommand:
        fields = {"consumerGroup": "G", "topic": topic, "queueId": 0, "maxMsgNums": 2, "invisibleTime": 600_000,
                  "pollTime": 0, "bornTime": 0, "initMode": 0, "order": order}  # fmt: skip
        return await self.ask(RequestCode.POP_MESSAGE, fields)

    async def test_what_is_popped_stays_popped_over_a_restart(self) -> None:
        self.cluster = cluster = EmbeddedCluster(reactor)
        self.addCleanup(lambda: Deferred.fromCoroutine(cluster.stop()))
        await cluster.start()
        for topic in ("Plain", "Ordered"):
            for body in (b"a", b"b", b"c"):
                fields = {"a": "P", "b": topic, "c": "TBW102", "d": 4, "e": 0, "f": 0, "g": 1, "h": 0, "i": ""}
                self.assertEqual((await self.ask(RequestCode.SEND_MESSAGE_V2, fields, body)).code, 0)
        first = await self.pop("Plain", "false")
        held = await self.pop("Ordered", "true")
        self.assertEqual([first.ext_fields["restNum"], held.ext_fields["restNum"]], ["1", "1"])
        await cluster.restart_broker()
        self.assertEqual((await self.pop("Ordered", "true")).code, 210)
        last = await self.pop("Plain", "false")
        self.assertEqual((last.code, last.ext_fields["msgOffsetInfo"]), (0, "0 0 2"))
        store = cluster.broker.controller.store
        self.assertEqual(store.max_offset_in_queue(TIMER_TOPIC, 0), 2)
