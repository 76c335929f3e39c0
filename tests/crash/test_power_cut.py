"""Power cuts at any moment: the files hold what was flushed and any part of the rest, and the store keeps its word."""

from __future__ import annotations

import itertools
import os
import random
import shutil
from pathlib import Path

import pytest

from tests.support.crash_rounds import scaled
from tests.support.power_cut import DiskRecorder
from tests.support.store_load import QUEUES, Acknowledged, StoreLoad, broken_promises, queue_serials, small_config
from twisted_mq.storage.flushing.flush import FlushService
from twisted_mq.storage.flushing.index_flush import IndexFlush
from twisted_mq.storage.message_store import FileMessageStore
from twisted_mq.storage.recovery import recovery

GENERATIONS = 4
IMAGES_A_CUT = 2
SERIALS_A_GENERATION = 1_000_000
SCANS = (1 << 10, 8 << 10, 64 << 20)
"""recovery_scan_bytes"""
KILL_CHANCE = 0.02
LONGEST_LIFE = 60
"""Steps between a start and a cut."""


class Life:
    """A store directory under load in one thread, from a start to a power cut; `images` are the possible results of the cut."""

    def __init__(self, root: Path, source: random.Random, generation: int, told: list[Acknowledged]) -> None:
        self.told = told
        self.told_at_cut = list(told)
        self.images: list[Path] = []
        self._root = root
        self._random = source
        self._disk = DiskRecorder(root)
        self._seconds = 0.0
        self._seen: dict[tuple[str, int], int] = {}
        self._syncs_left = 1 << 30
        self._load = StoreLoad(source, generation * SERIALS_A_GENERATION, self.told.append)
        self._disk.before_sync = self._count_sync

    def live(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Start, load, cut; the cut comes in a sync or between two steps."""
        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", self._disk.sync)
            patch.setattr(recovery, "SYNCED_ONE_BY_ONE", self._random.choice((0, 64)))
            self._live()
        self._disk.close()

    def _live(self) -> None:
        scan = self._random.choice(SCANS)
        self._config = small_config(self._root, recovery_scan_bytes=scan)
        store = self._store()
        steps = self._random.randrange(LONGEST_LIFE)
        if self._random.random() < 0.5:
            self._syncs_left = self._random.randrange(1 + 2 * steps)
        store.start()
        self._note_visible(store)
        for _ in range(steps):
            self._step(store)
            if self._random.random() < KILL_CHANCE:
                store = self._kill_and_restart(store)
        if not self.images:
            self._cut()
        self._disk.before_sync = lambda: None
        self._flush(store)
        store.close()

    def _store(self) -> FileMessageStore:
        return FileMessageStore(
            self._config,
            self._load.now_ms,
            sync=self._disk.sync,
            sync_file_systems=self._disk.sync_file_systems,
            monotonic=lambda: self._seconds,
        )

    def _kill_and_restart(self, store: FileMessageStore) -> FileMessageStore:
        """As after SIGKILL: the files are as they were written, flushed or not."""
        store._release()
        store._directory.close(clean=False)
        store = self._store()
        self._seen.clear()
        store.start()
        self._note_visible(store)
        return store

    def _step(self, store: FileMessageStore) -> None:
        self._load.step(store)
        self._note_visible(store)
        self._seconds += self._random.choice((0, 0.002, 0.007))
        if self._random.random() < 0.5:
            self._flush(store)

    def _flush(self, store: FileMessageStore) -> None:
        assert store._flush is not None
        store._flush.turn()

    def _note_visible(self, store: FileMessageStore) -> None:
        """Record the messages that readers can see, after a recovery or before an acknowledgement: they must stay too."""
        for topic, queue_id in QUEUES:
            begin = self._seen.get((topic, queue_id), 0)
            for offset, serial in queue_serials(store, topic, queue_id, begin).items():
                self.told.append(Acknowledged(topic, queue_id, offset, serial, 1))
                self._seen[topic, queue_id] = offset + 1

    def _count_sync(self) -> None:
        self._syncs_left -= 1
        if self._syncs_left == 0:
            self._cut()

    def _cut(self) -> None:
        self.told_at_cut = list(self.told)
        for _ in range(IMAGES_A_CUT):
            image = self._root.with_name(f"{self._root.name}-{len(self.images)}")
            self._disk.image(image, self._random)
            self.images.append(image)


@pytest.fixture(autouse=True)
def one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """No flush thread: the test takes its turns, so that a seed means one history."""
    monkeypatch.setattr(FlushService, "start", lambda self: None)
    monkeypatch.setattr(IndexFlush, "_launch", IndexFlush._flush)


def problems_in(root: Path, told: list[Acknowledged], scan_bytes: int) -> list[str]:
    """Return the faults of an image, checked in a copy, so that the next life recovers it itself."""
    copy = root.with_name(root.name + "-seen")
    shutil.copytree(root, copy)
    store = FileMessageStore(
        small_config(copy, recovery_scan_bytes=scan_bytes), lambda: 0, sync=lambda _descriptor: None
    )
    store.start()
    try:
        return broken_promises(store, told)
    finally:
        store.close()
        shutil.rmtree(copy)


@pytest.mark.parametrize("seed", range(scaled(40)))
def test_power_cuts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    source = random.Random(seed)
    root = tmp_path / "store"
    root.mkdir()
    told: list[Acknowledged] = []
    for generation in range(GENERATIONS):
        life = Life(root, source, generation, told)
        life.live(monkeypatch)
        told = life.told_at_cut
        for image, scan in itertools.product(life.images, SCANS):
            assert problems_in(image, told, scan) == [], (generation, image, scan)
        root = life.images[0]
