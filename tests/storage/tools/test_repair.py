"""Each kind of damage: what the plan says, that planning changes nothing, and what a broker finds after the repair."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.storage.conftest import LOG_FILE_BYTES, OpenFileStore, message, put
from tests.storage.tools.conftest import MESSAGES, ClosedStore
from twisted_mq.storage.tables.config_tables import ConsumerOffsetTable
from twisted_mq.storage.tools import repair_plan
from twisted_mq.storage.tools.exclusive import StoreInUse
from twisted_mq.storage.tools.repair import plan_repair, repair
from twisted_mq.storage.tools.verify import verify

EVERY = list(range(MESSAGES))


def without(*numbers: int) -> list[int]:
    return [number for number in EVERY if number not in numbers]


def first_of_file(store: ClosedStore, number: int) -> int:
    """The index of the first message in the n-th file."""
    return next(index for index in EVERY if store.record_at(index)[0] >= number * LOG_FILE_BYTES)


def flip_body(store: ClosedStore) -> list[int]:
    offset, _ = store.record_at(7)
    store.overwrite(store.log_file(0), offset + 120, b"\xff")
    return without(7)


def flip_size(store: ClosedStore) -> list[int]:
    offset, _ = store.record_at(0)
    store.overwrite(store.log_file(0), offset + 3, b"\x01")
    return without(0)


def zero_region(store: ClosedStore) -> list[int]:
    begin, end = store.record_at(3)[0], store.record_at(6)[0]
    store.overwrite(store.log_file(0), begin + 20, bytes(end - begin))
    return without(3, 4, 5, 6)


def zero_to_the_end_of_a_file(store: ClosedStore) -> list[int]:
    last = first_of_file(store, 1)
    begin, _ = store.record_at(last - 2)
    store.overwrite(store.log_file(0), begin, bytes(LOG_FILE_BYTES - begin))
    return without(last - 2, last - 1)


def cut_first_file(store: ClosedStore) -> list[int]:
    last = first_of_file(store, 1)
    begin, size = store.record_at(last - 1)
    with store.log_file(0).open("r+b") as file:
        file.truncate(begin + size // 2)
    return without(last - 1)


def cut_last_file(store: ClosedStore) -> list[int]:
    begin, size = store.record_at(MESSAGES - 1)
    with store.log_file(2).open("r+b") as file:
        file.truncate(begin + size - 1 - 2 * LOG_FILE_BYTES)
    return without(MESSAGES - 1)


def lose_a_log_file(store: ClosedStore) -> list[int]:
    lost = range(first_of_file(store, 1), first_of_file(store, 2))
    store.log_file(1).unlink()
    return without(*lost)


def insert_and_grow(store: ClosedStore) -> list[int]:
    offset, _ = store.record_at(first_of_file(store, 1) + 4)
    store.insert(store.log_file(1), offset - LOG_FILE_BYTES, b"foreign", keep_size=False)
    return EVERY


def insert_in_place(store: ClosedStore) -> list[int]:
    """The file keeps its size, so its end, here of the last file, is lost: zeros."""
    offset, _ = store.record_at(MESSAGES - 3)
    store.insert(store.log_file(2), offset - 2 * LOG_FILE_BYTES + 50, b"foreign bytes", keep_size=True)
    return without(MESSAGES - 3)


def lose_bytes_within(store: ClosedStore) -> list[int]:
    begin, _ = store.record_at(10)
    content = store.log_file(0).read_bytes()
    store.log_file(0).write_bytes(content[: begin + 30] + content[begin + 41 :])
    return without(10)


def lose_a_queue_file(store: ClosedStore) -> list[int]:
    store.queue_file("TopicA", 0, 0).unlink()
    return EVERY


def queue_longer_than_the_log(store: ClosedStore) -> list[int]:
    path = store.queue_file("TopicA", 1, 200)
    entry = path.read_bytes()[:20]
    store.overwrite(path, 20 * 2, (1 << 20).to_bytes(8, "big") + entry[8:])
    return EVERY


def wrong_queue_entry(store: ClosedStore) -> list[int]:
    store.overwrite(store.queue_file("TopicBB", 0, 0), 20 * 3, (77).to_bytes(8, "big"))
    return EVERY


def wrong_tags_code(store: ClosedStore) -> list[int]:
    store.overwrite(store.queue_file("TopicBB", 0, 0), 20 * 3 + 12, b"\x01")
    return EVERY


def damage_the_tail(store: ClosedStore) -> list[int]:
    offset, _ = store.record_at(MESSAGES - 1)
    store.overwrite(store.log_file(2), offset - 2 * LOG_FILE_BYTES + 4, b"\0")
    return without(MESSAGES - 1)


DAMAGES = [
    flip_body, flip_size, zero_region, zero_to_the_end_of_a_file, cut_first_file, cut_last_file, lose_a_log_file,
    insert_and_grow, insert_in_place, lose_bytes_within, lose_a_queue_file, queue_longer_than_the_log,
    wrong_queue_entry, wrong_tags_code, damage_the_tail,
]  # fmt: skip


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda one: one.__name__)
def test_after_a_repair_check_is_clean_and_every_intact_message_is_served(
    closed: ClosedStore, damage: Callable[[ClosedStore], list[int]]
) -> None:
    intact = damage(closed)
    assert not verify(str(closed.root)).sound
    before = closed.state()
    assert not plan_repair(str(closed.root)).empty
    assert closed.state() == before
    repair(str(closed.root), name="now")
    assert [str(one) for one in verify(str(closed.root)).findings] == []
    assert closed.problems() == []
    assert closed.bodies() == intact
    assert repair(str(closed.root), name="again").empty


def test_damaged_bytes_are_kept_with_a_manifest(closed: ClosedStore) -> None:
    begin, size = closed.record_at(7)
    flip_body(closed)
    damaged = closed.log_file(0).read_bytes()[begin : begin + size].rstrip(b"\0")
    plan = repair(str(closed.root), name="now")
    folder = closed.root / "damaged" / "now"
    manifest = json.loads((folder / "manifest.json").read_text())
    piece = manifest["pieces"][0]
    assert (plan.kept_in, manifest["command"], manifest["done"]) == (str(folder), "mq store repair", True)
    assert (piece["file"], piece["offset"], piece["length"]) == (f"commitlog/{0:020d}", begin, len(damaged))
    assert (folder / piece["savedAs"]).read_bytes() == damaged
    assert piece["sha256"] == hashlib.sha256(damaged).hexdigest()
    assert manifest["pieces"][1]["savedAs"] == "consumequeue"
    assert closed.problems() == []


def test_a_manifest_names_a_folder_whose_name_is_not_utf8(closed: ClosedStore, tmp_path: Path) -> None:
    flip_body(closed)
    root = str(closed.root.rename(tmp_path / os.fsdecode(b"\xff")))
    plan = repair(root, name="now")
    assert plan.kept_in is not None
    assert json.loads((Path(plan.kept_in) / "manifest.json").read_bytes())["store"] == root


def test_consumer_offsets_behind_their_queue_are_set_to_its_end(closed: ClosedStore) -> None:
    path = closed.root / "config" / "consumerOffset.json"
    path.write_text('{"offsetTable":{"TopicA@group":{0:13,1:15}}}')
    repair(str(closed.root), name="now")
    table = ConsumerOffsetTable(str(path))
    table.load()
    assert table.offsets == {"TopicA@group": {0: 13, 1: 12}}
    assert (verify(str(closed.root)).findings, closed.problems()) == ([], [])


def test_repair_refuses_while_a_broker_works_on_the_store(open_store: OpenFileStore, tmp_path: Path) -> None:
    put(open_store(), message())
    with pytest.raises(StoreInUse, match="stop it, then run the command again"):
        repair(str(tmp_path / "store"), name="now")
    assert not (tmp_path / "store" / "damaged").exists()


def test_large_gap_is_covered_by_several_records(closed: ClosedStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repair_plan, "LARGEST_FILL", 300)
    intact = zero_region(closed)
    plan = repair(str(closed.root), name="now")
    assert len([step for step in plan.log.files[0].steps if step.kind == "fill"]) > 1
    assert (closed.problems(), closed.bodies()) == ([], intact)
