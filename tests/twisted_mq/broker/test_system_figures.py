"""Metrics of memory, files, connections, rates and lag, compared with the kernel and the store's files at that time."""

from __future__ import annotations

import json
import os
import re
import struct
import sys
import unittest
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families
from twisted.internet import reactor
from twisted.internet.endpoints import TCP4ClientEndpoint, connectProtocol
from twisted.internet.task import deferLater
from twisted.web.client import Agent, readBody

from tests.twisted_mq.broker.test_broker_service import SEND, BrokerServiceCase, Raw
from twisted_mq.admin.calls import AdminCalls
from twisted_mq.admin.groups import consume_stats
from twisted_mq.admin.lag import queue_lags
from twisted_mq.broker.service import BrokerService
from twisted_mq.broker.statistics.broker_statistics import BrokerStatistics
from twisted_mq.config.metrics_options import MetricsExporterType
from twisted_mq.protocol.bodies import ConsumerData, HeartbeatData, KVTable, decode_body, encode_body
from twisted_mq.protocol.codes import RequestCode

MIB = 1 << 20
ENTRY_BYTES = 20
SIZE_OF_ENTRY = struct.Struct(">8xi8x")
ESTABLISHED = "01"
PROMETHEUS = {"metrics_exporter_type": MetricsExporterType.PROM, "metrics_prom_exporter_port": 0}


def resident_bytes() -> int:
    """VmRSS of /proc/self/status."""
    (kilobytes,) = re.findall(r"^VmRSS:\s+(\d+) kB$", Path("/proc/self/status").read_text(), re.MULTILINE)
    return int(kilobytes) * 1024


def established(port: int) -> int:
    """Connections that the kernel has at a port of this machine."""
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return sum(row[1].endswith(f":{port:04X}") and row[3] == ESTABLISHED for row in rows)


def entries(folder: Path) -> int:
    """Entries of a queue, as its files have them: those with a size."""
    data = b"".join(file.read_bytes() for file in sorted(folder.iterdir()))
    return sum(size > 0 for (size,) in SIZE_OF_ENTRY.iter_unpack(data))


@unittest.skipUnless(sys.platform == "linux", "the kernel's figures are read from /proc")
class SystemFiguresTest(BrokerServiceCase):
    async def page(self, broker: BrokerService) -> dict[str, float]:
        answer = await Agent(reactor).request(b"GET", f"http://127.0.0.1:{broker.metrics_port}/metrics".encode())
        text = (await readBody(answer)).decode()
        return {one.name: one.value for family in text_string_to_metric_families(text) for one in family.samples}

    def admin(self, name_server: str) -> AdminCalls:
        return AdminCalls(
            client=self.client,
            name_servers=[name_server],
            now_ms=lambda: 0,
            sleep=lambda seconds: deferLater(reactor, seconds),
        )

    async def send(self, broker: BrokerService, count: int = 1) -> None:
        for _ in range(count):
            self.assertEqual((await self.ask(broker.port, RequestCode.SEND_MESSAGE_V2, SEND, b"x")).code, 0)

    async def runtime_info(self, broker: BrokerService) -> dict[str, str]:
        answer = await self.ask(broker.port, RequestCode.GET_BROKER_RUNTIME_INFO)
        return decode_body(KVTable, answer.body).table

    async def settled(self, broker: BrokerService) -> dict[str, float]:
        """Return the figures once three pages in a row have the same descriptors.

        An end of an earlier page's connection closes a moment later.
        """
        pages = [await self.page(broker)]
        while len(pages) < 3 or len({one["process_open_fds"] for one in pages[-3:]}) > 1:
            await deferLater(reactor, 0.01)
            pages.append(await self.page(broker))
        return pages[-1]

    async def test_memory_is_what_the_kernel_counts(self) -> None:
        broker = await self.start(**PROMETHEUS)
        before = (await self.page(broker))["process_resident_memory_bytes"]
        ballast = bytearray(os.urandom(4096) * (64 * MIB // 4096))
        shown, true = (await self.page(broker))["process_resident_memory_bytes"], resident_bytes()
        self.assertLess(abs(shown - true), 8 * MIB)
        self.assertGreater(shown - before, len(ballast) - 8 * MIB)

    async def test_connections_and_descriptors_are_those_that_are_open(self) -> None:
        broker = await self.start(**PROMETHEUS)
        before = await self.settled(broker)
        endpoint = TCP4ClientEndpoint(reactor, "127.0.0.1", broker.port)
        for _ in range(7):
            peer = await connectProtocol(endpoint, Raw())
            self.addCleanup(peer.transport.loseConnection)
        while (await self.page(broker))["mq_connections"] < 7:
            await deferLater(reactor, 0.01)
        shown = await self.settled(broker)
        self.assertEqual(shown["mq_connections"], established(broker.port))
        self.assertEqual(shown["process_open_fds"] - before["process_open_fds"], 14)  # both ends are of this process
        self.assertLessEqual(abs(shown["process_open_fds"] - len(os.listdir("/proc/self/fd"))), 3)

    async def test_rates_are_what_came_to_the_queues_files_in_the_time(self) -> None:
        broker = await self.start()
        await self.send(broker)
        queue, statistics = self.path / "consumequeue" / "T" / "0", broker.controller.statistics
        seen: list[tuple[float, int]] = []
        take = BrokerStatistics.take_snapshot

        def noted(own: BrokerStatistics, seconds: float) -> None:
            take(own, seconds)
            seen.append((seconds, entries(queue)))

        statistics._snapshots.clear()
        self.patch(BrokerStatistics, "take_snapshot", noted)
        while len(seen) < 3:
            await self.send(broker)
        (began, first), (ended, last) = seen[0], seen[-1]
        rate = (await self.runtime_info(broker))["putTps"].split()[0]
        self.assertGreater(last, first)
        self.assertAlmostEqual(float(rate), (last - first) / (ended - began), places=6)

    async def test_lag_is_the_end_of_the_queues_file_less_the_saved_offset(self) -> None:
        name_server = self.namesrv()
        broker = await self.start(namesrv_addr=f"127.0.0.1:{name_server.port}", **PROMETHEUS)
        await self.send(broker, 9)
        heartbeat = HeartbeatData(client_id="c", consumer_data_set=[ConsumerData(group_name="G")])
        await self.ask(broker.port, RequestCode.HEART_BEAT, body=encode_body(heartbeat))
        commit = {"consumerGroup": "G", "topic": "T", "queueId": "0", "commitOffset": "4"}
        await self.ask(broker.port, RequestCode.UPDATE_CONSUMER_OFFSET, commit)
        await self.send(broker, 2)
        shown = (await self.page(broker))["rocketmq_consumer_lag_messages"]
        lags = queue_lags(await consume_stats(self.admin(f"127.0.0.1:{name_server.port}"), "G"), 0)
        await broker.stopService()
        file = (self.path / "config" / "consumerOffset.json").read_text()
        saved = json.loads(re.sub(r"([{,])(\d+):", r'\1"\2":', file))["offsetTable"]["T@G"]["0"]
        true = entries(self.path / "consumequeue" / "T" / "0") - saved
        self.assertEqual([shown, sum(one.waiting for one in lags)], [true, true])
