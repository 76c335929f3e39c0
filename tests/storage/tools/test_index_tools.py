"""The key index against the log: what is named, and that a rebuilt one is right."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.storage.conftest import OpenFileStore, message, put
from twisted_mq.protocol.layouts.index import ENTRY, SLOT, IndexSizes, entry_position
from twisted_mq.storage.check import check_store
from twisted_mq.storage.tools.index_tools import index_files, sizes_of
from twisted_mq.storage.tools.rebuild import rebuild
from twisted_mq.storage.tools.repair import repair
from twisted_mq.storage.tools.verify import verify

SIZES = IndexSizes(16, 30)
MESSAGES = 40


@pytest.fixture
def root(open_store: OpenFileStore, tmp_path: Path) -> Path:
    store = open_store(message_index_enable=True, max_hash_slot_num=SIZES.slots, max_index_num=SIZES.entries)
    for number in range(MESSAGES):
        keys = f"UNIQ_KEY\x01U{number:04d}\x02KEYS\x01k{number % 5} order-\u00e9{number}\x02".encode()
        put(store, message(body=b"x" * 40, properties=keys))
    store.build_index(1 << 30)
    assert store.check() == []
    store.close()
    return tmp_path / "store"


def overwrite(path: str, position: int, data: bytes) -> None:
    with open(path, "r+b") as file:
        file.seek(position)
        file.write(data)


def test_sound_index(root: Path) -> None:
    report = verify(str(root))
    assert (report.findings, report.index_entries) == ([], 3 * MESSAGES)
    assert check_store(str(root), index_sizes=SIZES) == []


def test_sizes_are_found_out_from_a_file(root: Path) -> None:
    assert {sizes_of(path, None) for path in index_files(verify_paths(root))} == {SIZES}


def verify_paths(root: Path):  # type: ignore[no-untyped-def]
    from twisted_mq.storage.files.paths import StorePaths

    return StorePaths(str(root))


def test_wrong_entry_chain_and_slot_are_named(root: Path) -> None:
    path = index_files(verify_paths(root))[0]
    place = entry_position(5, SIZES.slots)
    with open(path, "rb") as file:
        content = file.read()
    key_hash, offset, seconds, previous = ENTRY.unpack_from(content, place)
    overwrite(path, place, ENTRY.pack(key_hash ^ SIZES.slots, offset, seconds, previous))
    found = [one.problem for one in verify(str(root)).findings]
    assert found[0] == f"leads to {offset}, where no record has a key of hash {key_hash ^ SIZES.slots}"
    assert found[-1] == f"the record there has no entry for its key of hash {key_hash}"
    overwrite(path, place, ENTRY.pack(key_hash, offset, seconds, 4 if previous != 4 else 3))
    assert [one.problem.split(" is before it in its slot")[0] for one in verify(str(root)).findings] == [
        f"the entry says that {4 if previous != 4 else 3}"
    ]
    overwrite(path, place, ENTRY.pack(key_hash, offset, seconds, previous))
    slot = 40 + key_hash % SIZES.slots * 4
    (newest,) = SLOT.unpack_from(content, slot)
    overwrite(path, slot, SLOT.pack(newest + 1))
    (finding,) = verify(str(root)).findings
    assert (finding.offset, finding.problem.split(" and not")[0].split(" ", 2)[2]) == (
        newest,
        f"leads to entry {newest + 1}",
    )
    repair(str(root), name="now", index_sizes=SIZES)
    assert verify(str(root)).findings == []
    assert check_store(str(root), index_sizes=SIZES) == []


def test_cut_index_file_is_named_and_made_anew(root: Path) -> None:
    path = index_files(verify_paths(root))[1]
    os.truncate(path, 100)
    assert [one.part for one in verify(str(root), index_sizes=SIZES).findings][:1] == ["index"]
    report = rebuild(str(root), apply=True, name="now", index_sizes=SIZES)
    assert report.index_entries == 3 * MESSAGES
    assert verify(str(root)).findings == []
    assert check_store(str(root), index_sizes=SIZES) == []
