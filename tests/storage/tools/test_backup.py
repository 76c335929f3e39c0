"""Copies of stores that are written to, and stores made of such copies."""

from __future__ import annotations

import os
import random
import threading
from pathlib import Path

import pytest

from tests.storage.apache_stores import expected, sizes_of, unpack
from tests.support.store_load import (
    START_MS,
    Acknowledged,
    StoreLoad,
    broken_promises,
    small_config,
    wait_until_flushed,
)
from twisted_mq.storage.config import StoreConfig
from twisted_mq.storage.errors import NoStore, StoreError
from twisted_mq.storage.message_store import FileMessageStore
from twisted_mq.storage.timer.timer_files import TimerFiles
from twisted_mq.storage.tools.backup import MANIFEST, Copier, NoBackup, NotEmpty, back_up, read_manifest, restore
from twisted_mq.storage.tools.verify import verify


class Writer(threading.Thread):
    """A thread that loads a store until it is stopped, while `acknowledged` grows."""

    def __init__(self, root: Path, seed: int) -> None:
        super().__init__()
        self.acknowledged: list[Acknowledged] = []
        self.ends = threading.Event()
        self.loaded = threading.Event()
        self._root, self._seed = root, seed

    def run(self) -> None:
        load = StoreLoad(random.Random(self._seed), 0, self.acknowledged.append)
        store = FileMessageStore(small_config(self._root), load.now_ms)
        store.start()
        try:
            while not self.ends.is_set():
                wait_until_flushed(store, load.step(store).end_offset)
                if len(self.acknowledged) > 60:
                    self.loaded.set()
        finally:
            store.close()


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("links", [True, False], ids=["links", "copies"])
def test_all_that_was_acknowledged_before_is_in_a_copy_of_a_store_that_is_written_to(
    tmp_path: Path, seed: int, links: bool
) -> None:
    writer = Writer(tmp_path / "live", seed)
    writer.start()
    try:
        assert writer.loaded.wait(60)
        before = list(writer.acknowledged)
        made = back_up(str(tmp_path / "live"), str(tmp_path / "copy"), None, START_MS, links=links)
    finally:
        writer.ends.set()
        writer.join()
    assert (made.linked > 0) is links
    restored = restore(str(tmp_path / "copy"), str(tmp_path / "again"))
    assert restored.manifest == made.manifest and restored.found.messages == made.found.messages
    store = FileMessageStore(small_config(tmp_path / "again"), lambda: START_MS)
    report = store.start()
    try:
        assert broken_promises(store, before) == []
        assert store.max_physical_offset() == made.manifest.end_offset
    finally:
        store.close()
    assert report is None or report.clean
    assert verify(str(tmp_path / "live")).sound


def written(root: Path, count: int = 40) -> Path:
    """A store at rest."""
    load = StoreLoad(random.Random(7), 0, lambda told: None)
    store = FileMessageStore(small_config(root), load.now_ms)
    store.start()
    for _ in range(count):
        store_end = load.step(store).end_offset
    wait_until_flushed(store, store_end)
    store.close()
    return root


def test_a_restored_store_takes_messages_on(tmp_path: Path) -> None:
    back_up(str(written(tmp_path / "live")), str(tmp_path / "copy"), None, START_MS)
    restore(str(tmp_path / "copy"), str(tmp_path / "again"))
    told: list[Acknowledged] = []
    load = StoreLoad(random.Random(8), 10_000, told.append)
    store = FileMessageStore(small_config(tmp_path / "again"), load.now_ms)
    store.start()
    for _ in range(40):
        end = load.step(store).end_offset
    wait_until_flushed(store, end)
    store.dispatch()
    assert broken_promises(store, told) == []
    store.close()
    restore(str(tmp_path / "copy"), str(tmp_path / "third"))


@pytest.mark.parametrize("name", ["st", "livecopy", "ha_master", "ha_slave"])
def test_a_copy_of_a_store_of_apaches_has_its_messages_and_starts(tmp_path: Path, name: str) -> None:
    root = unpack(name, tmp_path)
    before = verify(str(root))
    made = back_up(str(root), str(tmp_path / "copy"), None, START_MS)
    assert made.found.messages == before.messages == len(expected(name, "message"))
    assert made.manifest.end_offset == before.max_offset
    ends = {key: end for key, end in made.found.queue_ends.items() if end}
    if before.sound:  # entries of the other one lead behind the end of its log
        assert ends == {key: end for key, end in before.queue_ends.items() if end}
    restore(str(tmp_path / "copy"), str(tmp_path / "again"))
    config = StoreConfig(store_path_root_dir=str(tmp_path / "again"), **sizes_of(name))
    store = FileMessageStore(config, lambda: START_MS)
    store.start()
    try:
        assert {key: store.max_offset_in_queue(*key) for key in ends} == ends
        assert store.check() == []
    finally:
        store.close()


def test_a_torn_tail_is_cut_off(tmp_path: Path) -> None:
    root = unpack("cut_tail", tmp_path)
    made = back_up(str(root), str(tmp_path / "copy"), None, START_MS)
    assert made.found.sound and made.manifest.end_offset == verify(str(root)).max_offset


def test_a_file_that_changed_is_not_restored(tmp_path: Path) -> None:
    back_up(str(written(tmp_path / "live")), str(tmp_path / "copy"), None, START_MS, links=False)
    name = next(name for name in read_manifest(str(tmp_path / "copy")).files if name.startswith("commitlog/"))
    with (tmp_path / "copy" / name).open("r+b") as file:
        file.seek(100)
        file.write(b"\xff")
    with pytest.raises(NoBackup, match="has changed since the backup"):
        restore(str(tmp_path / "copy"), str(tmp_path / "again"))
    assert not (tmp_path / "again").exists() and not (tmp_path / "again.partial").exists()


def test_a_store_whose_log_is_damaged_gives_no_backup(tmp_path: Path) -> None:
    root = written(tmp_path / "live", 80)
    first = sorted((root / "commitlog").iterdir())[0]
    with first.open("r+b") as file:
        file.seek(2000)
        file.write(b"\xff" * 300)
    with pytest.raises(StoreError, match=r"the copy is not sound: .*mq store verify"):
        back_up(str(root), str(tmp_path / "copy"), None, START_MS, links=False)
    assert not (tmp_path / "copy").exists()


def test_a_place_that_is_taken_is_left_alone(tmp_path: Path) -> None:
    root = written(tmp_path / "live")
    (tmp_path / "copy").mkdir()
    (tmp_path / "copy" / "mine").write_text("x")
    with pytest.raises(NotEmpty):
        back_up(str(root), str(tmp_path / "copy"), None, START_MS)
    assert os.listdir(tmp_path / "copy") == ["mine"]
    with pytest.raises(NoStore):
        back_up(str(tmp_path / "copy"), str(tmp_path / "other"), None, START_MS)


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "{}",
        "[" * 100_000,
        '{"source":"","made_ms":1,"min_offset":0,"end_offset":0,"messages":0,"files":{"../x":""}}',
        '{"source":"","made_ms":1,"min_offset":0,"end_offset":0,"messages":0,"files":{"/etc/passwd":""}}',
    ],
)
def test_what_is_no_backup_is_said(tmp_path: Path, text: str) -> None:
    (tmp_path / MANIFEST).write_text(text)
    with pytest.raises(NoBackup, match=MANIFEST):
        restore(str(tmp_path), str(tmp_path / "again"))


def test_names_may_have_bytes_that_are_not_utf8(tmp_path: Path) -> None:
    odd = os.fsdecode(b"\xff")
    root = written(tmp_path / odd)
    (root / odd).write_bytes(b"kept")
    made = back_up(str(root), str(tmp_path / "copy"), None, START_MS)
    assert (made.manifest.source, odd in made.manifest.files) == (str(root), True)
    restored = restore(str(tmp_path / "copy"), str(tmp_path / "again"))
    assert (restored.manifest, (tmp_path / "again" / odd).read_bytes()) == (made.manifest, b"kept")


def test_holes_stay_holes(tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    with source.open("wb") as file:
        file.write(b"begin")
        file.seek(8 << 20)
        file.write(b"middle")
        file.truncate(32 << 20)
    Copier(False, lambda amount: None).whole(str(source), str(target))
    assert target.read_bytes() == source.read_bytes()
    assert target.stat().st_blocks * 512 <= 4 << 20


def test_messages_that_wait_for_their_time_wait_in_the_copy_too(tmp_path: Path) -> None:
    """The log goes on behind what the checkpoint knows, and the wheel is in use: the copy makes its own from the log."""
    root = written(tmp_path / "live")
    timer = timer_files(root)
    timer.open(clean=True, end_of_commit_log=0, end_of_queue=1 << 62)
    for number in range(9):
        if number == 5:
            timer.write(timer.progress(START_MS, 5, START_MS))
        timer.add(START_MS + 5000, START_MS, 1, number, 1, 7)
    back_up(str(root), str(tmp_path / "copy"), None, START_MS)
    timer.close()
    restored = restore(str(tmp_path / "copy"), str(tmp_path / "again"))
    again = timer_files(tmp_path / "again")
    again.open(clean=True, end_of_commit_log=restored.manifest.end_offset, end_of_queue=1 << 62)
    assert again.count(START_MS + 5000) == 9
    places = [again.log.unit(position) for position in again.positions(START_MS + 5000)[0]]
    assert [place.physical_offset for place in places if place is not None] == list(range(9))
    again.close()


def timer_files(root: Path) -> TimerFiles:
    return TimerFiles(str(root), 1000, 400, 10)
