"""Transactions and filters of a broker with files, over a stop and a start. Real time, over loopback."""

from __future__ import annotations

import os
import shutil
import tempfile
from typing import Any

from twisted.internet import defer, reactor
from twisted.trial.unittest import TestCase

from tests.support.transactions import half_fields
from twisted_mq.broker.options import BrokerOptions
from twisted_mq.broker.service import BrokerService, make_broker
from twisted_mq.protocol.bodies import ConsumerData, HeartbeatData, ProducerData, encode_body
from twisted_mq.protocol.codes import RequestCode
from twisted_mq.protocol.messages.subscription import build_subscription
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.remoting.client import RemotingClient


class RestartTests(TestCase):
    timeout = 20

    def setUp(self) -> None:
        self.folder = tempfile.mkdtemp(prefix="mq-test-")
        self.addCleanup(shutil.rmtree, self.folder)
        self.asked: defer.Deferred[RemotingCommand] = defer.Deferred()

    async def start(self) -> tuple[BrokerService, RemotingClient, str]:
        options = BrokerOptions(
            broker_name="broker-a",
            broker_ip1="127.0.0.1",
            bind_address="127.0.0.1",
            listen_port=0,
            ha_listen_port=0,
            namesrv_addr="",
            store_path_root_dir=self.folder,
            mapped_file_size_commit_log=1 << 20,
            transaction_time_out=60_000,
            transaction_check_interval=20,
            enable_property_filter=True,
        )
        broker = make_broker(options, reactor)
        broker.startService()
        await broker.started
        client = RemotingClient(reactor)
        client.processors[RequestCode.CHECK_TRANSACTION_STATE] = self.check
        address = f"127.0.0.1:{broker.port}"
        consumer = ConsumerData(
            group_name="G", subscription_data_set=[build_subscription("T", "a > 5", "SQL92", sub_version=7)]
        )
        data = HeartbeatData(
            client_id="c", producer_data_set=[ProducerData(group_name="PG")], consumer_data_set=[consumer]
        )
        answer = await client.invoke(address, RemotingCommand.request(34, body=encode_body(data)), 5)
        self.assertEqual(answer.code, 0)
        return broker, client, address

    def check(self, channel: Any, request: RemotingCommand) -> None:
        if not self.asked.called:
            self.asked.callback(request)

    def test_both_go_on_after_a_restart(self) -> defer.Deferred[None]:
        return defer.Deferred.fromCoroutine(self.restarted())

    async def restarted(self) -> None:
        broker, client, address = await self.start()
        for key in ("K1", "K2"):
            request = RemotingCommand.request(310, half_fields(key, broker.now_ms()), b"body")
            sent = await client.invoke(address, request, 5)
        offset = str(int(sent.ext_fields["msgId"][16:], 16))
        end = {"producerGroup": "PG", "commitLogOffset": offset, "tranStateTableOffset": "1", "commitOrRollback": "8"}
        await client.invoke(address, RemotingCommand.request(37, {**end, "msgId": "K2"}), 5)
        await client.close()
        await broker.stopService()
        names = os.listdir(os.path.join(self.folder, "config"))
        self.assertLessEqual({"transactionMetrics", "consumerFilter.json"}, set(names))

        broker, client, address = await self.start()
        controller = broker.controller
        self.addCleanup(broker.stopService)
        self.addCleanup(client.close)
        self.assertEqual(controller.transactions.metrics.count("T"), 1)
        data = controller.filters.get("T", "G")
        assert data is not None
        self.assertEqual((data.expression, data.client_version, data.is_dead), ("a > 5", 7, False))
        controller.options.transaction_time_out = 0
        asked = await self.asked
        self.assertEqual((asked.ext_fields["msgId"], asked.ext_fields["tranStateTableOffset"]), ("K1", "2"))
