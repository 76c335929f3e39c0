"""Progress on disk, and a broker stopped and started: in memory on a virtual clock, and once on real files."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Any

import pytest
from twisted.internet import reactor
from twisted.internet.defer import Deferred
from twisted.internet.task import deferLater
from twisted.trial.unittest import TestCase

from tests.support.broker import BrokerInMemory, MemoryTable, Peer
from twisted_mq.protocol.codes import RequestCode
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.remoting.client import RemotingClient
from twisted_mq.storage.timer.timer_checkpoint import TimerCheckpoint
from twisted_mq.testing import EmbeddedCluster


class FullTable(MemoryTable):
    """A table on a full disk."""

    def save(self) -> bool:
        raise OSError(errno.ENOSPC, "No space left on device")


def fields(key: str, properties: str) -> dict[str, str]:
    return {"a": "P", "b": "T", "c": "TBW102", "d": "4", "e": "1", "f": "0", "g": "1795217217000", "h": "0",
            "i": f"UNIQ_KEY\x01{key}\x02{properties}"}  # fmt: skip


def running(root: Path, **options: Any) -> tuple[BrokerInMemory, Peer]:
    broker = BrokerInMemory(store_path_root_dir=str(root), **options)
    broker.controller.waiting.start()
    return broker, broker.connect()


def test_timers_progress_is_written_once_the_log_is_on_disk(tmp_path: Path) -> None:
    broker, peer = running(tmp_path, hold_flushes=True)
    waiting, path = broker.controller.waiting, tmp_path / "config" / "timercheck"
    waiting.save_timer()
    assert not path.exists()
    peer.ask(RequestCode.SEND_MESSAGE_V2, fields("K", "TIMER_DELAY_SEC\x015\x02"), b"x")
    broker.clock.advance(1)
    waiting.save_timer()
    assert not path.exists()
    broker.store.flush()
    first = TimerCheckpoint.load(str(path))
    assert (first.last_timer_queue_offset, first.last_timer_log_flush_position, first.counter) == (1, 52, 1)
    waiting.save_timer()
    broker.store.flush()
    assert TimerCheckpoint.load(str(path)) == first
    waiting.stop()
    waiting.save()
    assert TimerCheckpoint.load(str(path)).counter == 2


def test_levels_that_cannot_be_saved_keep_the_timers_progress_from_nothing(tmp_path: Path) -> None:
    broker, peer = running(tmp_path, tables={"delays": FullTable()})
    peer.ask(RequestCode.SEND_MESSAGE_V2, fields("K", "TIMER_DELAY_SEC\x015\x02"), b"x")
    broker.clock.advance(1)
    waiting = broker.controller.waiting
    waiting.stop()
    with pytest.raises(OSError, match="No space left"):
        waiting.save()
    assert TimerCheckpoint.load(str(tmp_path / "config" / "timercheck")).last_timer_queue_offset == 1


def test_without_the_wheel_nothing_of_it_runs_or_is_made(tmp_path: Path) -> None:
    broker, peer = running(tmp_path, timer_wheel_enable=False)
    refused = peer.ask(RequestCode.SEND_MESSAGE_V2, fields("K", "TIMER_DELAY_SEC\x015\x02"), b"x")
    broker.clock.advance(10)
    broker.controller.waiting.clean()
    broker.controller.waiting.save_timer()
    broker.controller.waiting.save()
    assert (refused.code, list(tmp_path.iterdir())) == (1, [])


def test_crowded_second_is_known_to_the_sends(tmp_path: Path) -> None:
    broker, peer = running(tmp_path, timer_congest_num_each_slot=2)
    codes = []
    for number in range(40):  # between the limit and twice the limit, chance decides
        ask = fields(f"K{number}", "TIMER_DELIVER_MS\x011795217230500\x02")
        codes.append(peer.ask(RequestCode.SEND_MESSAGE_V2, ask, b"x").code)
        broker.clock.advance(0.2)
    assert (codes[:3], codes[-1]) == ([0, 0, 0], 1)
    assert codes.count(0) <= 4
    broker.controller.waiting.save()


class RestartTest(TestCase):
    """A broker on real files and sockets."""

    async def send(self, address: str, key: str, properties: str) -> None:
        client = RemotingClient(reactor)
        try:
            answer = await client.invoke(
                address, RemotingCommand.request(RequestCode.SEND_MESSAGE_V2, fields(key, properties), body=b"x")
            )
        finally:
            client.close()
        self.assertEqual((answer.code, answer.remark), (0, None))

    async def test_messages_wait_over_a_restart_and_come_once(self) -> None:
        cluster = EmbeddedCluster(reactor)
        self.addCleanup(lambda: Deferred.fromCoroutine(cluster.stop()))
        await cluster.start()
        await self.send(cluster.broker_address, "level", "DELAY\x011\x02")
        await self.send(cluster.broker_address, "time", "TIMER_DELAY_SEC\x012\x02")
        await cluster.restart_broker()
        store = cluster.broker.controller.store
        for _ in range(100):
            if store.max_offset_in_queue("T", 1) >= 2:
                break
            await deferLater(reactor, 0.05)
        await cluster.restart_broker()
        await deferLater(reactor, 0.3)
        found = cluster.broker.controller.store
        self.assertEqual(found.max_offset_in_queue("T", 1), 2)
        self.assertEqual(cluster.broker.controller.waiting.schedule.offsets.get(1), 1)
