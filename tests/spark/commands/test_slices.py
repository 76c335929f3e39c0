"""Exports and replays say what they could not do, and know their stores again by the last record done."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

import pytest
from pyspark.sql import SparkSession

from tests.spark.commands.test_export import READERS
from tests.spark.live.brokers import Broker
from tests.spark.source.test_marks import filled
from tests.spark.stores import StoreWriter
from twisted_mq.spark.commands.export import ExportSelection, export
from twisted_mq.spark.commands.replay import Replay, replay
from twisted_mq.spark.commands.slices import ProgressFile, Slice, Work, gathered, tag_of, work
from twisted_mq.spark.commands.stores import Stores
from twisted_mq.spark.errors import DataLost, StoreReadError
from twisted_mq.spark.findings.findings import Findings
from twisted_mq.spark.source.log_end import complete_end
from twisted_mq.spark.source.stores import Store, list_log_files

FILE_BYTES = 4096


def stores_of(*paths: Path) -> Stores:
    stores = [Store(str(path)) for path in paths]
    ends = {store: complete_end(store, list_log_files(store)) for store in stores}
    return Stores(cast(SparkSession, None), ends)


def test_log_files_of_a_store_are_done_together_up_to_a_size() -> None:
    first, second = Store("/a"), Store("/b")
    pieces = [Slice(first, at, at + 10, "a") for at in (0, 10, 20)] + [Slice(second, 0, 10, "b")]
    bounds = [(one.key, one.begin, one.end) for one in gathered(pieces, 20)]
    assert bounds == [("a", 0, 20), ("a", 20, 30), ("b", 0, 10)]
    assert list(gathered(pieces, 0)) == pieces
    assert list(gathered([], 20)) == []


def left(progress: str, *paths: Path, fail: bool = True) -> Work:
    """Find the work left, and mark all of it as done."""
    kept = ProgressFile(progress, {})
    found = work(stores_of(*paths), kept.done, fail)
    for piece in found.slices:
        kept.reached(piece)
    return found


def ranges(found: Work) -> list[tuple[int, int]]:
    return [(piece.begin, piece.end) for piece in found.slices]


@pytest.fixture
def progress(tmp_path: Path) -> str:
    return str(tmp_path / "progress.json")


def shortened(root: Path, count: int, body: bytes = b"body") -> StoreWriter:
    """The same store after a power cut, or restored from a backup."""
    for file in (root / "commitlog").iterdir():
        file.unlink()
    return filled(root, count, body)


def test_retention_between_two_runs(tmp_path: Path, progress: str) -> None:
    writer = filled(tmp_path / "store", 10)
    assert ranges(left(progress, writer.root)) == [(0, writer.position)]
    done = writer.position
    while writer.position < 3.5 * FILE_BYTES:
        writer.append()
    writer.write()
    for number in range(2):
        (writer.root / "commitlog" / f"{number * FILE_BYTES:020d}").unlink()
    lost = 2 * FILE_BYTES - done
    with pytest.raises(
        DataLost, match=f"physical offsets {done} to {2 * FILE_BYTES} wanted, the log from {2 * FILE_BYTES} on found"
    ):
        left(progress, writer.root)
    found = left(progress, writer.root, fail=False)
    assert (found.lost_bytes, found.begun_anew, found.absent) == (lost, 0, 0)
    assert ranges(found) == [(2 * FILE_BYTES, 3 * FILE_BYTES), (3 * FILE_BYTES, writer.position)]
    assert left(progress, writer.root) == Work((), 0, 0, 0)


def test_a_file_missing_inside_is_told_at_the_first_run(tmp_path: Path, progress: str) -> None:
    writer = filled(tmp_path / "store", 100)
    (writer.root / "commitlog" / f"{FILE_BYTES:020d}").unlink()
    with pytest.raises(DataLost, match=f"physical offsets {FILE_BYTES} to {2 * FILE_BYTES} wanted"):
        left(progress, writer.root)
    assert left(progress, writer.root, fail=False).lost_bytes == FILE_BYTES


@pytest.mark.parametrize(
    ("count", "body", "told"),
    [(6, b"body", "the log ends at"), (12, b"news", "has changed")],
    ids=["shorter", "other records"],
)
def test_another_log_is_done_from_its_begin_under_another_key(
    tmp_path: Path, progress: str, count: int, body: bytes, told: str
) -> None:
    root = filled(tmp_path / "store", 10).root
    (first,) = left(progress, root).slices
    writer = shortened(root, count, body)
    with pytest.raises(DataLost, match=told):
        left(progress, root)
    found = left(progress, root, fail=False)
    assert (found.lost_bytes, found.begun_anew, ranges(found)) == (0, 1, [(0, writer.position)])
    assert (first.key, found.slices[0].key) == (tag_of(first.store), f"{tag_of(first.store)}.2")
    assert left(progress, root) == Work((), 0, 0, 0)


def test_a_moved_store_goes_on_and_one_in_its_old_place_is_new(tmp_path: Path, progress: str) -> None:
    writer = filled(tmp_path / "old", 10)
    (first,) = left(progress, writer.root).slices
    writer.root = writer.root.rename(tmp_path / "new")
    for _ in range(3):
        writer.append()
    writer.write()
    other = filled(tmp_path / "old", 4, b"other")
    found = left(progress, other.root, writer.root)
    assert [(piece.begin, piece.end, piece.store.uri == str(other.root)) for piece in found.slices] == [
        (0, other.position, True),
        (writer.positions[10], writer.position, False),
    ]
    assert [piece.key for piece in found.slices] == [f"{first.key}.2", first.key]
    assert left(progress, writer.root, other.root) == Work((), 0, 0, 0)
    assert left(progress, other.root) == Work((), 0, 0, 1)


def test_progress_of_an_earlier_release_goes_on(tmp_path: Path, progress: str) -> None:
    writer = filled(tmp_path / "store", 10)
    tag = tag_of(Store(str(writer.root)))
    Path(progress).write_text(json.dumps({"about": {}, "done": {tag: writer.positions[4]}}))
    assert ranges(left(progress, writer.root)) == [(writer.positions[4], writer.position)]
    kept = json.loads(Path(progress).read_text())["done"][tag]
    assert (kept["reached"], kept["last"]["offset"]) == (writer.position, writer.positions[-1])
    Path(progress).write_text(json.dumps({"about": {}, "done": {tag: writer.position + 1}}))
    with pytest.raises(DataLost, match=f"the log ends at {writer.position}: 1 bytes that were read are not there"):
        left(progress, writer.root)


@pytest.mark.parametrize("done", ["[]", '{"a": -1}', '{"a": {"last": {}}}', '{"a": {"reached": 1, "last": {"b": 1}}}'])
def test_progress_that_says_nothing_is_refused(progress: str, done: str) -> None:
    Path(progress).write_text(f'{{"about": {{}}, "done": {done}}}')
    with pytest.raises(StoreReadError, match="does not contain the progress of a job"):
        ProgressFile(progress, {})


def figures(found: Findings) -> dict[str, Any]:
    return {one.name: one.value for one in found.figures}


@pytest.mark.parametrize("kind", sorted(READERS))
def test_an_export_after_losses(session: SparkSession, tmp_path: Path, kind: str) -> None:
    writer, out = filled(tmp_path / "store", 10), str(tmp_path / "out")

    def run(root: Path, **options: bool) -> Findings:
        return export(Stores.opened(session, [str(root)]), 50, out, kind, ExportSelection(**options))  # type: ignore[arg-type]

    def rows() -> int:
        return READERS[kind](out).num_rows

    assert run(writer.root).sound
    writer.root = writer.root.rename(tmp_path / "moved")
    writer.append()
    writer.write()
    assert figures(run(writer.root))["messages"] == 1
    while writer.position < 1.5 * FILE_BYTES:
        writer.append()
    writer.write()
    (writer.root / "commitlog" / f"{0:020d}").unlink()
    with pytest.raises(DataLost, match="--no-fail-on-data-loss"):
        run(writer.root)
    assert rows() == 11
    found = run(writer.root, fail_on_data_loss=False)
    kept = [offset for offset in writer.positions if offset >= FILE_BYTES]
    assert (found.sound, figures(found)["messages"]) == (False, len(kept))
    assert figures(found)["bytes of logs that are lost"] == FILE_BYTES - writer.positions[11]
    assert rows() == 11 + len(kept)
    shortened(writer.root, 5)
    with pytest.raises(DataLost, match="that were read are not there"):
        run(writer.root)
    found = run(writer.root, fail_on_data_loss=False)
    assert (figures(found)["stores started again"], figures(found)["messages"], found.sound) == (1, 5, False)
    assert rows() == 16 + len(kept)
    assert run(writer.root).sound
    assert rows() == 16 + len(kept)


def test_a_replay_after_losses(session: SparkSession, broker: Broker, tmp_path: Path) -> None:
    writer, target = filled(tmp_path / "store", 10), broker.topic(1)

    def run(**options: bool) -> Findings:
        access = {"nameServer": broker.name_server}
        wanted = Replay("Orders", target, access, state=str(tmp_path / "state"), **options)  # type: ignore[arg-type]
        return replay(Stores.opened(session, [str(writer.root)]), 50, wanted)

    assert run().sound
    writer = shortened(writer.root, 6, b"news")
    with pytest.raises(DataLost, match="the log ends at"):
        run()
    found = run(fail_on_data_loss=False)
    assert (figures(found)["messages sent"], figures(found)["stores started again"], found.sound) == (6, 1, False)
    (queue,) = broker.read(target)
    assert [message.body for message in queue] == [b"body"] * 10 + [b"news"] * 6
    assert len({message.unique_key for message in queue}) == 16
