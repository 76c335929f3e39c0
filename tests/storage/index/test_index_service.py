"""Several index files: rolling, names, what a start trusts, trimming; and the builder that follows the log."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from tests.storage.conftest import START_MS, OpenFileStore, SettableClock, message, put
from twisted_mq.protocol.layouts.index import IndexSizes, entry_position
from twisted_mq.protocol.layouts.record_codec import decode_message
from twisted_mq.storage.config import FlushDiskType
from twisted_mq.storage.files.checkpoint import Checkpoint
from twisted_mq.storage.files.system_calls import posix_fallocate
from twisted_mq.storage.index import index_builder
from twisted_mq.storage.index.index_builder import LAG_BYTES
from twisted_mq.storage.index.index_service import time_name
from twisted_mq.storage.interfaces import PutStatus
from twisted_mq.storage.message_store import FileMessageStore

EVER = 1 << 62
SMALL = {"max_hash_slot_num": 10, "max_index_num": 11}
"""Ten entries a file."""


def keyed(keys: str, **fields: Any) -> Any:
    return message(properties=f"KEYS\x01{keys}\x02".encode(), property_map={"KEYS": keys}, **fields)


def found(store: Any, key: str, most: int = 64, begin: int = 0, end: int = EVER) -> list[int]:
    result = store.query_message("TopicA", key, most, begin, end)
    return [decode_message(record).physical_offset for record in result.records]


def fill(store: Any, count: int, clock: SettableClock | None = None, first: int = 0) -> list[int]:
    """So many messages with the keys kN and common; their physical offsets."""
    offsets = []
    for number in range(first, first + count):
        if clock is not None:
            clock.now += 1000
        offsets.append(put(store, keyed(f"k{number} common"))[0].physical_offset)
    return offsets


def files(root: Path) -> list[Path]:
    return sorted((root / "index").iterdir())


def crash(store: FileMessageStore, root: Path) -> None:
    """Leave the store as after a kill: everything written so far, and the abort file."""
    store.close()
    (root / "abort").touch()


def test_name_is_the_local_time(monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = 1_795_216_735
    assert time_name(seconds * 1000 + 7)[14:] == "007"
    assert len(time_name(seconds * 1000 + 7)) == 17
    assert time_name(0) < time_name(seconds * 1000)


def test_keys_are_found_over_many_files(open_store: OpenFileStore, tmp_path: Path, clock: SettableClock) -> None:
    store = open_store(**SMALL)
    offsets = fill(store, 23, clock)
    assert [found(store, f"k{number}") for number in range(23)] == [[offset] for offset in offsets]
    assert found(store, "common") == offsets
    assert found(store, "common", most=12) == offsets[-12:]
    assert found(store, "common", begin=START_MS + 5000, end=START_MS + 20_000) == offsets[4:20]
    assert [path.stat().st_size for path in files(tmp_path / "store")] == [IndexSizes(10, 11).file_bytes] * 5


def test_names_follow_each_other_though_the_clock_stands(open_store: OpenFileStore, tmp_path: Path) -> None:
    store = open_store(**SMALL)
    fill(store, 15)
    store.build_index(1 << 20)
    assert [int(path.name) for path in files(tmp_path / "store")] == [int(time_name(START_MS)) + n for n in range(3)]


def test_no_file_without_a_key(open_store: OpenFileStore, tmp_path: Path) -> None:
    store = open_store()
    put(store, message())
    assert store.build_index(1 << 20) is False
    assert not (tmp_path / "store" / "index").exists()


def test_indexing_can_be_switched_off(open_store: OpenFileStore, tmp_path: Path) -> None:
    store = open_store(message_index_enable=False)
    offsets = fill(store, 3)
    assert (found(store, "common"), (tmp_path / "store" / "index").exists()) == ([], False)
    store.close()
    again = open_store()
    assert found(again, "common") == offsets


def test_a_clean_start_goes_on_in_the_last_file(open_store: OpenFileStore, tmp_path: Path) -> None:
    store = open_store(**SMALL)
    offsets = fill(store, 7)
    store.close()
    before = [path.read_bytes() for path in files(tmp_path / "store")]
    assert len(before) == 2
    again = open_store(**SMALL)
    again.build_index(1 << 20)
    assert [path.read_bytes() for path in files(tmp_path / "store")] == before
    offsets += fill(again, 1, first=7)
    assert found(again, "common") == offsets
    assert again.recovery_report.actions == []
    assert len(files(tmp_path / "store")) == 2


def test_a_clean_start_knows_the_last_records_keys_however_many_files_they_fill(
    open_store: OpenFileStore, tmp_path: Path
) -> None:
    store = open_store(**SMALL)
    (offset,) = fill(store, 1)
    many = put(store, keyed(" ".join(f"m{number}" for number in range(35))))[0].physical_offset
    store.close()
    before = [path.read_bytes() for path in files(tmp_path / "store")]
    again = open_store(**SMALL)
    again.build_index(1 << 20)
    assert [path.read_bytes() for path in files(tmp_path / "store")] == before
    assert (found(again, "k0"), found(again, "m0"), found(again, "m34")) == ([offset], [many], [many])


def test_a_crash_leaves_full_files_that_the_checkpoint_knows(
    open_store: OpenFileStore, tmp_path: Path, clock: SettableClock
) -> None:
    root = tmp_path / "store"
    store = open_store(**SMALL)
    offsets = fill(store, 12, clock)
    crash(store, root)
    assert Checkpoint.load(str(root / "checkpoint")).index_msg_timestamp == START_MS + 10_000
    names = files(root)
    kept = [path.read_bytes() for path in names[:2]]
    again = open_store(**SMALL)
    assert [(action.path, action.offset, action.done) for action in again.recovery_report.actions] == [
        (str(names[2]), offsets[10], "may not be on disk whole after the crash; the index is rebuilt from here on")
    ]
    assert files(root) == names[:2]
    assert found(again, "common") == offsets
    assert [path.read_bytes() for path in files(root)[:2]] == kept


def test_a_crash_before_any_checkpoint_trusts_no_file(open_store: OpenFileStore, tmp_path: Path) -> None:
    """All are of one millisecond: only the first could have been flushed before the checkpoint said so."""
    root = tmp_path / "store"
    store = open_store(**SMALL)
    offsets = fill(store, 25)
    crash(store, root)
    names = files(root)
    again = open_store(**SMALL)
    assert files(root) == names[:1]
    assert found(again, "common") == offsets


def damage_size(path: Path) -> None:
    os.truncate(path, 100)


def damage_header(path: Path) -> None:
    with path.open("r+b") as file:
        file.seek(36)
        file.write(b"\x7f")


def damage_last_entry(path: Path) -> None:
    with path.open("r+b") as file:
        file.seek(entry_position(10, 10))
        file.write(bytes(20))


@pytest.mark.parametrize(
    ("damage", "what"),
    [
        (damage_size, "has 100 bytes, maxHashSlotNum and maxIndexNum mean 300"),
        (damage_header, "the header says 2130706442 entries in "),
        (damage_last_entry, "the entries begin with "),
    ],
)
def test_a_damaged_file_is_named_and_built_anew(
    open_store: OpenFileStore, tmp_path: Path, damage: Any, what: str, clock: SettableClock
) -> None:
    store = open_store(**SMALL)
    offsets = fill(store, 23, clock)
    store.close()
    names = files(tmp_path / "store")
    damage(names[2])
    again = open_store(**SMALL)
    (action,) = again.recovery_report.actions
    assert (action.path, action.done.startswith(what)) == (str(names[2]), True)
    assert action.done.endswith("the index is rebuilt from here on, with 2 newer files")
    assert found(again, "common") == offsets


def test_missing_files_at_the_end_are_built_anew(open_store: OpenFileStore, tmp_path: Path) -> None:
    store = open_store(**SMALL)
    offsets = fill(store, 23)
    store.close()
    for path in files(tmp_path / "store")[3:]:
        path.unlink()
    again = open_store(**SMALL)
    assert found(again, "common") == offsets


def test_files_of_another_log_are_built_anew(open_store: OpenFileStore, tmp_path: Path) -> None:
    store = open_store(**SMALL)
    fill(store, 23)
    store.close()
    for path in (tmp_path / "store" / "commitlog").iterdir():
        path.unlink()
    again = open_store(**SMALL)
    assert files(tmp_path / "store") == []
    offsets = fill(again, 1)
    assert found(again, "common") == offsets


def test_other_names_in_the_directory_are_left_alone(open_store: OpenFileStore, tmp_path: Path) -> None:
    store = open_store(**SMALL)
    offsets = fill(store, 3)
    store.close()
    (tmp_path / "store" / "index" / "notes.txt").write_text("mine")
    again = open_store(**SMALL)
    assert found(again, "common") == offsets
    assert (tmp_path / "store" / "index" / "notes.txt").read_text() == "mine"


def test_what_is_not_on_disk_yet_is_not_found(open_store: OpenFileStore) -> None:
    """Under synchronous flush a search must not find what recovery could take away."""
    store = open_store(flush_disk_type=FlushDiskType.SYNC_FLUSH, flush_interval_commit_log_ms=60_000)
    result = store.put_message(keyed("k"))
    assert store._index.build(store._visible_end()) is False
    assert store._index.position == 0
    store.close()
    store.start()
    assert found(store, "k") == [result.physical_offset]


class FullDisk:
    """posix_fallocate that refuses index files while `full`."""

    def __init__(self) -> None:
        self.full = False

    def __call__(self, descriptor: int, start: int, count: int) -> None:
        if self.full and "/index/" in os.readlink(f"/proc/self/fd/{descriptor}"):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        posix_fallocate(descriptor, start, count)


def test_a_full_disk_only_delays_the_index(open_store: OpenFileStore, caplog: pytest.LogCaptureFixture) -> None:
    disk = FullDisk()
    store = open_store(keywords={"allocate": disk}, **SMALL)
    offsets = fill(store, 7)
    assert found(store, "common") == offsets
    disk.full = True
    offsets += fill(store, 20, first=7)
    assert found(store, "common") == offsets[:10]
    assert found(store, "common") == offsets[:10]
    assert [record.getMessage().split(":")[0] for record in caplog.records if record.levelname == "ERROR"] == [
        "the index stays behind the log"
    ]
    assert store.put_message(keyed("x")).status is PutStatus.PUT_OK
    disk.full = False
    assert found(store, "common") == offsets
    assert store.check() == []


def test_files_before_the_logs_beginning_are_trimmed(open_store: OpenFileStore, tmp_path: Path) -> None:
    store = open_store(**SMALL)
    offsets = fill(store, 23)
    store.build_index(1 << 20)
    names = files(tmp_path / "store")
    index = store._index.index
    assert index.trim(offsets[9]) == [str(names[0])]
    assert index.trim(offsets[22] + 1) == [str(path) for path in names[1:4]]
    assert index.size_bytes == IndexSizes(10, 11).file_bytes
    assert found(store, "k22") == [offsets[22]]


def test_long_ways_are_gone_in_steps(open_store: OpenFileStore) -> None:
    store = open_store(**SMALL)
    put(store, *[keyed(f"k{number}") for number in range(200)])
    assert store.build_index(1000) is True
    first = store._index.position
    assert 1000 <= first < 1300
    while store.build_index(1000):
        assert store._index.position > first
        first = store._index.position
    assert store._index.position == store.max_physical_offset()


def test_many_sends_are_indexed_without_a_search(open_store: OpenFileStore) -> None:
    store = open_store(mapped_file_size_commit_log=1 << 20, max_index_num=2000)
    for number in range(2000):
        put(store, keyed(f"k{number}", body=bytes(500)))
    lag = store.max_physical_offset() - store._index.position
    assert store._index.position > 0
    assert 0 < lag <= LAG_BYTES + 700


def test_sends_never_run_away_from_a_search(open_store: OpenFileStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """Much in one dispatch: the index follows as far as a search can catch up."""
    monkeypatch.setattr(index_builder, "CATCH_UP_BYTES", 300 << 10)
    store = open_store(mapped_file_size_commit_log=1 << 20, max_index_num=20_000)
    lags = []
    for _ in range(8):
        put(store, *[keyed(f"k{number}", body=bytes(1000)) for number in range(300)])
        lags.append(store.max_physical_offset() - store._index.position)
    assert max(lags) < 1 << 20
    assert lags[-1] <= lags[-2]
