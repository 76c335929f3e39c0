"""Every figure of a disk is that of the disk in question, where log and queues are on two."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import unittest
from typing import Any

from twisted.internet import reactor
from twisted.web.client import Agent, readBody

from tests.twisted_mq.broker.test_broker_service import SEND, BrokerServiceCase
from twisted_mq.cli.doctor.machine import check_store
from twisted_mq.config.metrics_options import MetricsExporterType
from twisted_mq.protocol.bodies import KVTable, decode_body
from twisted_mq.protocol.codes import RequestCode
from twisted_mq.storage.files.disk_space import disk_space

OTHER_DISK = "/dev/shm"


def _is_another_disk(path: str) -> bool:
    return os.access(OTHER_DISK, os.W_OK) and os.stat(OTHER_DISK).st_dev != os.stat(path).st_dev


class DiskFiguresTest(BrokerServiceCase):
    def setUp(self) -> None:
        super().setUp()
        if not _is_another_disk(str(self.path.parent)):
            raise unittest.SkipTest(f"{OTHER_DISK} is no disk of its own here")
        self.log = tempfile.mkdtemp(dir=OTHER_DISK)
        self.addCleanup(shutil.rmtree, self.log)

    async def metrics(self, port: int) -> str:
        answer = await Agent(reactor).request(b"GET", f"http://127.0.0.1:{port}/metrics".encode())
        return (await readBody(answer)).decode()

    async def test_log_and_queues_have_the_figures_of_their_own_disks(self) -> None:
        prometheus = {"metrics_exporter_type": MetricsExporterType.PROM, "metrics_prom_exporter_port": 0}
        broker = await self.start(store_path_commit_log=self.log, **prometheus)
        await self.ask(broker.port, RequestCode.SEND_MESSAGE_V2, SEND, b"x")
        answer = await self.ask(broker.port, RequestCode.GET_BROKER_RUNTIME_INFO)
        table = decode_body(KVTable, answer.body).table
        page = await self.metrics(broker.metrics_port)
        log, queues = disk_space(self.log), disk_space(str(self.path))
        self.assertNotEqual(log.total, queues.total)
        self.assertEqual(float(table["commitLogDiskRatio"]), log.used_ratio)
        self.assertEqual(float(table[f"commitLogDiskRatio_{self.log}"]), log.used_ratio)
        self.assertEqual(float(table["consumeQueueDiskRatio"]), queues.used_ratio)
        self.assertEqual(self.of(page, "rocketmq_brokeruntime_commitlog_disk_ratio"), log.used_ratio)
        self.assertEqual(self.of(page, "rocketmq_brokeruntime_consumequeue_disk_ratio"), queues.used_ratio)
        self.assertEqual(self.of(page, "rocketmq_brokeruntime_commitlogdir_capacity_total"), log.total)
        self.near(self.of(page, "rocketmq_brokeruntime_commitlogdir_capacity_free"), log.available)
        self.near(self.of(page, "rocketmq_storage_size_bytes"), log.used)
        (disk,) = [one for one in check_store(str(self.path), self.log) if one.check == "disk"]
        self.assertIn(f"{log.used_ratio:.0%} used", disk.found)

    def of(self, page: str, name: str) -> float:
        (value,) = re.findall(rf"^{name}(?:{{.*}})? (\S+)$", page, re.MULTILINE)
        return float(value)

    def near(self, shown: float, bytes_of_disk: Any) -> None:
        """Other programs may write meanwhile."""
        self.assertLess(abs(shown - bytes_of_disk), 1 << 30)
