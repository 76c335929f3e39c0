"""Turns of the retention service: order, pauses, failures and stops, on a virtual clock over a real store."""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path
from typing import Any

import attrs
from twisted.internet import defer, task
from twisted.trial import unittest

from twisted_mq.broker.options import BrokerOptions
from twisted_mq.broker.retention_service import RetentionService, has_space, local_hour
from twisted_mq.broker.store_options import store_config
from twisted_mq.storage.config import StoreConfig
from twisted_mq.storage.interfaces import InnerMessage, PutStatus, Shut
from twisted_mq.storage.message_store import FileMessageStore
from twisted_mq.storage.retention import Needed, remove_file

OLD_SECONDS = 4 * 24 * 3600
NOW_SECONDS = 1_700_000_000


class RetentionServiceTest(unittest.SynchronousTestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)
        self.clock = task.Clock()
        self.clock.advance(NOW_SECONDS)
        self.usage, self.space = 0.1, False
        self.removed: list[str] = []
        self.refused: set[str] = set()
        config = StoreConfig(
            store_path_root_dir=folder.name, mapped_file_size_commit_log=4096, mapped_file_size_consume_queue=200
        )
        self.store = FileMessageStore(config, self.now_ms)
        self.store.start()
        self.addCleanup(self.store.close)
        for _ in range(70):
            self.store.put_message(InnerMessage("TopicA", 0, bytes(100), b"", {}, 0))
        self.store.dispatch()
        self.service = self.make()

    def now_ms(self) -> int:
        return int(self.clock.seconds() * 1000)

    def make(self, in_thread: Any = defer.maybeDeferred, hour: int = 4, **more: Any) -> RetentionService:
        return RetentionService(
            self.store,
            BrokerOptions(),
            self.clock,
            self.now_ms,
            in_thread,
            measure=lambda path: self.usage,
            has_space=lambda config: self.space,
            remove=self.remove,
            hour=lambda now_ms: hour,
            **more,
        )

    def remove(self, path: str) -> None:
        name = os.path.relpath(path, self.root)
        if name in self.refused:
            raise PermissionError(1, "Operation not permitted", path)
        self.removed.append(name)
        remove_file(path)

    def age(self, *offsets: int) -> None:
        for offset in offsets:
            os.utime(self.root / f"commitlog/{offset:020d}", (NOW_SECONDS - OLD_SECONDS,) * 2)

    def test_expired_files_go_one_after_the_other_then_their_queue_files(self) -> None:
        self.age(0, 4096)
        turn = self.service.turn()
        assert self.removed == [f"commitlog/{0:020d}"]
        self.clock.advance(0.1)
        names = [f"commitlog/{0:020d}", f"commitlog/{4096:020d}"]
        names += [f"consumequeue/TopicA/0/{offset:020d}" for offset in (0, 200, 400, 600)]
        assert self.removed == names
        self.assertNoResult(turn)
        self.clock.advance(0.1)
        assert self.successResultOf(turn) is None
        assert self.store.min_physical_offset() == 8192

    def test_what_consumers_need_stays(self) -> None:
        self.age(0, 4096)
        physical = self.store.queue_entries("TopicA", 0, 25, 1)[0][0]
        asked: list[Needed] = [Needed("TopicA", 0, 25, physical)]
        service = self.make(needed=lambda: defer.succeed(asked))
        turn = service.turn()
        self.clock.pump([0.1] * 10)
        self.successResultOf(turn)
        assert self.store.min_physical_offset() == 4096

    def test_a_store_that_found_no_space_is_ready_again_once_a_file_fits(self) -> None:
        gate = self.store.gate
        gate.no_space = True
        self.successResultOf(self.service.turn())
        assert gate.why_not_now is Shut.DISK_FULL
        self.space = True
        self.successResultOf(self.service.turn())
        assert gate.why_not_now is None

    def test_a_file_of_the_log_and_one_of_a_queue_have_to_fit(self) -> None:
        config = self.store.config
        assert has_space(config)
        for name in ("mapped_file_size_commit_log", "mapped_file_size_consume_queue"):
            assert not has_space(attrs.evolve(config, **{name: 20 << 50}))

    def test_file_that_will_not_go_holds_up_the_later_ones_until_it_is_tried_again(self) -> None:
        self.age(0, 4096)
        self.refused = {f"commitlog/{0:020d}"}
        turn = self.service.turn()
        self.clock.pump([0.1] * 10)
        self.successResultOf(turn)
        assert [name for name in self.removed if name.startswith("commitlog")] == []
        assert self.store.min_physical_offset() == 8192
        self.refused = set()
        self.clock.advance(60)
        self.successResultOf(self.service.turn())
        assert [name for name in self.removed if name.startswith("commitlog")] == []
        self.clock.advance(61)
        turn = self.service.turn()
        self.clock.advance(0.1)
        self.successResultOf(turn)
        assert [name for name in self.removed if name.startswith("commitlog")] == [
            f"commitlog/{0:020d}",
            f"commitlog/{4096:020d}",
        ]

    def test_full_disk_refuses_messages_until_a_turn_finds_space(self) -> None:
        statuses = []
        for self.usage in (0.95, 0.5):
            turn = self.service.turn()
            self.clock.pump([0.1] * 20)
            self.successResultOf(turn)
            statuses.append(self.store.put_message(InnerMessage("TopicA", 0, b"x", b"", {}, 0)).status)
        self.store.dispatch()
        assert statuses == [PutStatus.SERVICE_NOT_AVAILABLE, PutStatus.PUT_OK]
        assert self.store.min_physical_offset() == 3 * 4096

    def test_stop_ends_a_turn_between_two_files(self) -> None:
        self.age(0, 4096)
        turn = self.service.turn()
        self.service.stop()
        self.service.stop()
        self.clock.advance(10)
        self.successResultOf(turn)
        assert self.removed == [f"commitlog/{0:020d}"]
        assert self.clock.getDelayedCalls() == []

    def test_stop_while_the_disk_is_measured(self) -> None:
        service = self.make(in_thread=lambda *_: defer.Deferred())
        turn = service.turn()
        service.stop()
        self.successResultOf(turn)

    def test_failed_turn_is_logged_and_ends_nothing(self) -> None:
        service = self.make(in_thread=lambda *_: defer.fail(ValueError("statvfs")))
        self.successResultOf(service.turn())
        assert len(self.flushLoggedErrors(ValueError)) == 1

    def test_hour_is_the_machines(self) -> None:
        """22:13:20 UTC is 23:13:20 in a zone an hour east."""
        before = os.environ.get("TZ")
        self.addCleanup(self.set_zone, before)
        hours = []
        for zone in ("UTC", "XYZ-1"):
            self.set_zone(zone)
            hours.append(local_hour(self.now_ms()))
        assert hours == [22, 23]

    def set_zone(self, zone: str | None) -> None:
        os.environ.pop("TZ", None)
        os.environ.update({"TZ": zone} if zone is not None else {})
        time.tzset()

    def test_options_reach_the_store(self) -> None:
        options = BrokerOptions(
            file_reserved_time=1,
            delete_when="01;02",
            delete_file_batch_max=3,
            clean_file_forcibly_enable=False,
            redelete_hanged_file_interval=5,
            disk_max_used_space_ratio=50,
            disk_space_clean_forcibly_ratio=60,
            disk_space_warning_level_ratio=70,
        )
        config = store_config(options, b"")
        assert (
            config.file_reserved_time,
            config.delete_when,
            config.delete_file_batch_max,
            config.clean_file_forcibly_enable,
            config.redelete_hanged_file_interval_ms,
            config.disk_max_used_space_ratio,
            config.disk_space_clean_forcibly_ratio,
            config.disk_space_warning_level_ratio,
        ) == (1, "01;02", 3, False, 5, 50, 60, 70)
