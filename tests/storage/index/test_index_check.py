"""check() names what is wrong with an index."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.storage.apache_stores import INDEX_SIZES, unpack
from tests.storage.conftest import START_MS, SettableClock, config, message, no_sync, put
from twisted_mq.protocol.layouts.index import SLOT, IndexSizes, entry_position, slot_position
from twisted_mq.storage.check import check_store
from twisted_mq.storage.index.index_check import open_index
from twisted_mq.storage.message_store import FileMessageStore

SIZES = IndexSizes(10, 50)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A closed store with the keys k0 to k7, each record with `common` too."""
    settings = config(tmp_path / "store", max_hash_slot_num=10, max_index_num=50)
    store = FileMessageStore(settings, SettableClock(), sync=no_sync)
    store.start()
    put(store, *[message(properties=f"KEYS\x01k{number} common\x02".encode()) for number in range(8)])
    store.close()
    return tmp_path / "store"


def index_file(root: Path) -> Path:
    (path,) = (root / "index").iterdir()
    return path


def change(root: Path, position: int, data: bytes) -> None:
    with index_file(root).open("r+b") as file:
        file.seek(position)
        file.write(data)


def problems(root: Path) -> list[tuple[int, str]]:
    return [(one.offset, one.problem) for one in check_store(str(root), index_sizes=SIZES)]


def test_a_sound_index_has_no_problems(root: Path) -> None:
    assert problems(root) == []
    (view,) = open_index(str(root / "index"), SIZES)
    assert (view.index_count, view.begin_timestamp, view.fault()) == (17, START_MS, "")


def test_files_of_other_sizes_are_passed_over(root: Path) -> None:
    assert check_store(str(root)) == []
    assert open_index(str(root / "index"), IndexSizes(11, 50)) == []
    assert open_index(str(root / "none"), SIZES) == []


def test_an_entry_that_leads_elsewhere(root: Path) -> None:
    (view,) = open_index(str(root / "index"), SIZES)
    entry = view.entry(3)
    change(root, entry_position(3, 10) + 4, (7).to_bytes(8, "big"))
    assert problems(root) == [
        (3, f"entry 3 leads to 7, where no record has a key of hash {entry.key_hash}"),
        (entry.physical_offset, f"the record there has no entry for its key of hash {entry.key_hash}"),
    ]


def test_a_broken_chain(root: Path) -> None:
    (view,) = open_index(str(root / "index"), SIZES)
    entry = view.entry(16)
    change(root, entry_position(16, 10) + 16, bytes(4))
    assert problems(root) == [(16, f"entry 16 says that 0 is before it, that is {entry.previous_index}")]


def test_a_slot_that_lost_its_newest(root: Path) -> None:
    (view,) = open_index(str(root / "index"), SIZES)
    slot = slot_position(view.entry(16).key_hash, 10)
    change(root, slot, SLOT.pack(2))
    assert problems(root) == [(16, f"the slot at {slot} leads to entry 2, the newest is 16")]


def test_a_damaged_header(root: Path) -> None:
    change(root, 36, (999).to_bytes(4, "big"))
    (view,) = open_index(str(root / "index"), SIZES)
    assert problems(root)[0] == (0, f"the header says 998 entries in {view.hash_slot_count} slots")


def test_an_open_store_checks_its_index(root: Path) -> None:
    settings = config(root, max_hash_slot_num=10, max_index_num=50)
    store = FileMessageStore(settings, SettableClock(), sync=no_sync)
    store.start()
    put(store, message(properties=b"KEYS\x01later\x02"))
    assert store.check() == []
    store.build_index(1 << 20)
    assert store.check() == []
    file: Any = store._index.index.files[0]
    file.view[entry_position(17, 10) : entry_position(17, 10) + 4] = bytes(4)
    assert next(problem.offset for problem in store.check()) == 17
    store.close()


@pytest.mark.parametrize("name", ["st", "ha_master", "ha_slave"])
def test_apaches_indexes_are_sound(tmp_path: Path, name: str) -> None:
    assert check_store(str(unpack(name, tmp_path)), index_sizes=IndexSizes(*INDEX_SIZES[name])) == []
