"""A broker on loopback whose disk is full for a while, and one that is stopped while it is."""

from __future__ import annotations

import functools
import json
import time
from collections.abc import Callable

import pytest
from twisted.internet import defer, reactor
from twisted.internet.task import deferLater
from twisted.web.client import Agent, readBody

from tests.support.faulty_disk import FaultyDisk
from tests.twisted_mq.broker.test_broker_service import SEND, BrokerServiceCase
from twisted_mq.broker import stored_state, table_saver
from twisted_mq.broker.schedule import waiting_messages
from twisted_mq.broker.service import BrokerService
from twisted_mq.config.metrics_options import MetricsExporterType
from twisted_mq.protocol.bodies import ConsumerData, HeartbeatData, encode_body
from twisted_mq.protocol.codes import RequestCode
from twisted_mq.storage.check import check_store
from twisted_mq.storage.message_store import FileMessageStore
from twisted_mq.storage.timer.timer_checkpoint import TimerCheckpoint
from twisted_mq.storage.timer.timer_files import TimerFiles

OFTEN = {"timer_flush_interval_ms": 50, "flush_consumer_offset_interval": 50, "flush_delay_offset_interval": 50}


class FullDiskTest(BrokerServiceCase):
    def setUp(self) -> None:
        super().setUp()
        patch = pytest.MonkeyPatch()
        self.addCleanup(patch.undo)
        self.disk = disk = FaultyDisk(self.path.absolute(), patch)
        self.path = self.path.absolute()
        for module, made in ((stored_state, FileMessageStore), (waiting_messages, TimerFiles)):
            begin = functools.partialmethod(made.__init__, allocate=disk.allocate, sync=disk.sync)
            patch.setattr(module, made.__name__, type(made.__name__, (made,), {"__init__": begin}))

    async def send(self, broker: BrokerService, properties: str) -> int:
        now = str(int(time.time() * 1000))
        return (await self.ask(broker.port, 310, SEND | {"g": now, "i": properties}, b"x")).code

    async def commit(self, broker: BrokerService, offset: int) -> None:
        heartbeat = HeartbeatData(client_id="c", consumer_data_set=[ConsumerData(group_name="G")])
        await self.ask(broker.port, RequestCode.HEART_BEAT, body=encode_body(heartbeat))
        fields = {"consumerGroup": "G", "topic": "T", "queueId": "0", "commitOffset": str(offset)}
        await self.ask(broker.port, RequestCode.UPDATE_CONSUMER_OFFSET, fields)

    def progress(self) -> int:
        """Messages of the timer's topic that are noted, as the disk says."""
        return TimerCheckpoint.load(str(self.path / "config" / "timercheck")).last_timer_queue_offset

    def offsets(self) -> dict[str, int]:
        table = json.loads((self.path / "config" / "consumerOffset.json").read_text().replace("{0:", '{"0":'))
        return dict(table["offsetTable"].get("T@G", {}))

    def told(self, words: str) -> defer.Deferred[None]:
        return defer.Deferred.fromCoroutine(self.until(lambda: self.said(words)))

    async def test_timer_and_offsets_go_on_when_there_is_space_again(self) -> None:
        broker = await self.start(**OFTEN)
        self.assertEqual(await self.send(broker, ""), 0)
        self.assertEqual(await self.send(broker, "TIMER_DELAY_SEC\x011\x02"), 0)
        await self.until(lambda: self.progress() == 1)
        self.disk.fill()
        self.disk.opening = self.disk.making
        self.assertEqual(await self.send(broker, "TIMER_DELAY_SEC\x011\x02"), 0)
        await self.commit(broker, 1)
        await self.told("save_timer failed, retrying")
        await self.told("consumerOffset.json not written, retrying")
        self.disk.heal()
        self.assertEqual(await self.send(broker, "TIMER_DELAY_SEC\x011\x02"), 0)
        await self.until(lambda: broker.controller.store.max_offset_in_queue("T", 0) == 4)
        await self.until(lambda: self.progress() == 3)
        await broker.stopService()
        self.assertEqual(self.offsets(), {"0": 1})
        self.assertFalse((self.path / "abort").exists())
        self.assertEqual(check_store(str(self.path)), [])
        self.flushLoggedErrors(OSError)

    async def test_offsets_are_written_when_the_log_that_they_rest_on_is_on_disk(self) -> None:
        """The log has the check points and the revived messages. A power cut must not take those and leave the offsets."""
        broker = await self.start(**OFTEN)
        self.assertEqual(await self.send(broker, ""), 0)
        store, held = broker.controller.store, list[Callable[[bool], None]]()
        patch = pytest.MonkeyPatch()
        self.addCleanup(patch.undo)
        patch.setattr(table_saver, "RETRY_SECONDS", 0.05)
        patch.setattr(store, "when_flushed", lambda offset, callback: held.append(callback))
        await self.commit(broker, 1)
        await self.until(lambda: held)
        self.assertFalse((self.path / "config" / "consumerOffset.json").exists())
        held.pop()(False)
        await self.told("consumerOffset.json not written, retrying")
        self.assertFalse((self.path / "config" / "consumerOffset.json").exists())
        await self.until(lambda: held)
        held.pop()(True)
        await self.until((self.path / "config" / "consumerOffset.json").exists)
        self.assertEqual(self.offsets(), {"0": 1})
        patch.undo()

    async def test_ready_is_false_from_the_first_message_without_space_until_there_is_some(self) -> None:
        name_server = self.namesrv()
        broker = await self.start(
            namesrv_addr=f"127.0.0.1:{name_server.port}", mapped_file_size_commit_log=4096, clean_resource_interval=50,
            metrics_exporter_type=MetricsExporterType.PROM, metrics_prom_exporter_port=0,
        )  # fmt: skip
        ready = f"http://127.0.0.1:{broker.metrics_port}/ready".encode()
        self.assertEqual(await self.send(broker, ""), 0)
        self.assertEqual((await Agent(reactor).request(b"GET", ready)).code, 200)
        self.disk.fill()
        broker._work.retention._has_space = lambda config: not self.disk.allocating  # type: ignore[union-attr]
        while await self.send(broker, "") == 0:
            pass
        refused = await Agent(reactor).request(b"GET", ready)
        self.assertEqual(
            (refused.code, json.loads(await readBody(refused))["wrong"]), (503, ["the broker's disk is full"])
        )
        self.disk.heal()
        while (await Agent(reactor).request(b"GET", ready)).code != 200:
            await deferLater(reactor, 0.02)
        self.assertEqual(await self.send(broker, ""), 0)

    async def test_a_stop_on_a_full_disk_ends_cleanly_with_all_that_was_stored(self) -> None:
        broker = await self.start(**OFTEN)
        for properties in ("", "DELAY\x0118\x02", "TIMER_DELAY_SEC\x013600\x02"):
            self.assertEqual(await self.send(broker, properties), 0)
        await self.until(lambda: broker.controller.waiting.timer.queue_offset == 1)
        (self.path / "checkpoint").unlink(missing_ok=True)
        self.disk.fill()
        self.disk.removing = 0
        await broker.stopService()
        self.assertEqual(len(self.said("broker b stopped")), 1)
        self.assertEqual(len(self.said("checkpoint not written")), 1)
        self.assertFalse((self.path / "abort").exists())
        self.disk.heal()
        self.assertEqual(check_store(str(self.path)), [])
        again = await self.start()
        self.assertEqual(again.controller.store.max_offset_in_queue("T", 0), 1)
        self.flushLoggedErrors(OSError)

    async def test_what_fails_at_a_stop_keeps_no_later_step_from_being_taken(self) -> None:
        broker = await self.start(**OFTEN)
        await self.send(broker, "")
        await self.send(broker, "TIMER_DELAY_SEC\x013600\x02")
        await self.until(lambda: self.progress() == 1)
        broker.controller.transactions.stop = lambda: 1 / 0  # type: ignore[assignment,method-assign,return-value]
        await self.commit(broker, 1)
        await broker.stopService()
        self.assertEqual(len(self.flushLoggedErrors(ZeroDivisionError)), 1)
        self.assertEqual(self.offsets(), {"0": 1})
        self.assertFalse((self.path / "abort").exists())

    async def test_a_store_that_cannot_be_flushed_is_left_to_the_next_start(self) -> None:
        broker = await self.start()
        await self.send(broker, "TIMER_DELAY_SEC\x013600\x02")
        await self.until(lambda: broker.controller.waiting.timer.queue_offset == 1)
        self.disk.syncing = 5
        await broker.stopService()
        self.assertEqual(len(self.said("store not closed, the next start recovers it")), 1)
        self.assertEqual(len(self.said("broker b stopped")), 1)
        self.assertTrue((self.path / "abort").exists())
        self.assertEqual(self.progress(), 0)
        self.disk.heal()
        again = await self.start()
        await self.until(lambda: again.controller.waiting.timer.queue_offset == 1)
