"""Exports have each message once, whatever they were killed at; each kind of table is read by a library of its own."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import deltalake
import pyarrow as pa
import pyarrow.dataset
import pytest
from pyarrow import fs
from pyiceberg.catalog.sql import SqlCatalog
from pyspark.sql import SparkSession

from tests.spark.stores import BORN_MS, StoreWriter
from twisted_mq.spark.commands import export as export_module
from twisted_mq.spark.commands.export import COLUMNS, ExportSelection, export
from twisted_mq.spark.commands.formats import TARGETS
from twisted_mq.spark.commands.stores import Stores
from twisted_mq.spark.commands.targets import Added, ExportPlace
from twisted_mq.spark.errors import StoreReadError, WrongOption
from twisted_mq.spark.jobs.topics import TopicKind, topic_kind
from twisted_mq.storage.store_reader import StoreReader

DAY_MS = 86_400_000


def parquet(out: str) -> pa.Table:
    return pa.dataset.dataset(out, partitioning="hive").to_table()


def iceberg(out: str) -> pa.Table:
    return SqlCatalog("rocketmq", uri=f"sqlite:///{out}/catalog.db").load_table("rocketmq.messages").scan().to_arrow()


def delta(out: str) -> pa.Table:
    return deltalake.DeltaTable(out).to_pyarrow_table()


READERS: dict[str, Callable[[str], pa.Table]] = {"parquet": parquet, "iceberg": iceberg, "delta": delta}


def put(writer: StoreWriter, number: int) -> None:
    writer.append(
        ("Orders", "%RETRY%audit")[number % 2],
        b"%d" % number,
        {"TAGS": "new", "UNIQ_KEY": f"K{number}"},
        born_timestamp=BORN_MS + DAY_MS * (number % 3),
    )


def exported(session: SparkSession, store: str, out: Path, kind: str) -> int:
    return export(Stores.opened(session, [store]), 50, str(out), kind, ExportSelection()).figures[0].value


def places(kind: str, out: Path) -> list[int]:
    return sorted(READERS[kind](str(out))["physicalOffset"].to_pylist())


@pytest.mark.parametrize("kind", sorted(READERS))
def test_a_killed_export_goes_on_without_gap_or_repeat(
    session: SparkSession, writer: StoreWriter, tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer.file_size = 2048
    for number in range(20):
        put(writer, number)
    store, out = writer.write(), tmp_path / "out"
    target = TARGETS[kind]
    kept: list[object] = []

    def killed(place: ExportPlace) -> object:
        made = target(place)
        add = made.add

        def add_once(done: object, files: object) -> None:
            if kept:
                raise KeyboardInterrupt
            kept.append(done)
            add(done, files)  # type: ignore[arg-type]

        monkeypatch.setattr(made, "add", add_once)
        return made

    monkeypatch.setitem(TARGETS, kind, killed)  # type: ignore[arg-type]
    with pytest.raises(KeyboardInterrupt):
        exported(session, store, out, kind)
    assert len(kept) == 1
    monkeypatch.setitem(TARGETS, kind, target)
    assert exported(session, store, out, kind) > 0
    assert places(kind, out) == writer.positions
    assert exported(session, store, out, kind) == 0
    put(writer, 20)
    assert exported(session, writer.write(), out, kind) == 1
    assert places(kind, out) == writer.positions
    found = READERS[kind](str(out)).sort_by("physicalOffset").to_pylist()
    assert [row["body"] for row in found] == [b"%d" % number for number in range(21)]
    assert {row["topic"] for row in found} == {"Orders", "%RETRY%audit"}
    assert {(row["store"], row["file"]) for row in found if row["physicalOffset"] < 2048} == {(store, f"{0:020d}")}
    assert set(COLUMNS) <= set(found[0])
    with pytest.raises(StoreReadError, match="cannot be continued with"):
        export(Stores.opened(session, [store]), 50, str(out), kind, ExportSelection(("Orders",)))


class Written:
    """A file system in which a killed export's tasks write to its folder while the next export deletes it."""

    def __init__(self, system: fs.FileSystem) -> None:
        self._system = system

    def __getattr__(self, name: str) -> object:
        return getattr(self._system, name)

    def delete_dir(self, path: str) -> None:
        if path.endswith("/_staging"):
            raise OSError(39, "Directory not empty")
        self._system.delete_dir(path)


def test_an_export_goes_on_beside_tasks_of_a_killed_one(
    session: SparkSession, writer: StoreWriter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    put(writer, 0)
    left = tmp_path / "out" / "_staging" / "killed"
    left.mkdir(parents=True)
    locate = export_module.locate
    with monkeypatch.context() as planted:
        planted.setattr(export_module, "locate", lambda uri: (Written(locate(uri)[0]), locate(uri)[1]))
        assert exported(session, writer.write(), tmp_path / "out", "parquet") == 1
    assert "stay for the next one to delete" in caplog.text
    assert left.exists()
    assert exported(session, writer.write(), tmp_path / "out", "parquet") == 0
    assert not left.exists()


def test_a_topic_has_one_file_a_day_whatever_the_log_files(
    session: SparkSession, writer: StoreWriter, tmp_path: Path
) -> None:
    writer.file_size = 2048
    for number in range(30):
        put(writer, number)
    stores = Stores.opened(session, [writer.write()])
    before = session.conf.get("spark.sql.adaptive.advisoryPartitionSizeInBytes")
    export(stores, 50, str(tmp_path / "out"), "parquet", ExportSelection(slice_bytes=1 << 30))
    assert session.conf.get("spark.sql.adaptive.advisoryPartitionSizeInBytes") == before
    assert places("parquet", tmp_path / "out") == writer.positions
    files = list((tmp_path / "out").rglob("*.parquet"))
    assert len(files) == len({file.parent for file in files}) == 6


def test_a_recorded_store_is_exported_whole(
    session: SparkSession, captured: Callable[[str], str], tmp_path: Path
) -> None:
    path = captured("st")
    wanted = [
        (one.physical_offset, one.topic, one.queue_id, one.queue_offset, one.unique_key, one.tags, one.body)
        for one in StoreReader(path).messages()
        if topic_kind(one.topic) is not TopicKind.SYSTEM
    ]
    assert exported(session, path, tmp_path / "out", "parquet") == len(wanted) > 300
    names = ("physicalOffset", "topic", "queueId", "queueOffset", "uniqKey", "tags", "body")
    found = parquet(str(tmp_path / "out")).sort_by("physicalOffset").to_pylist()
    assert [tuple(row[name] for name in names) for row in found] == wanted


def test_what_is_not_wanted(session: SparkSession, writer: StoreWriter, tmp_path: Path) -> None:
    for topic in ("Orders", "Bills", "SCHEDULE_TOPIC_XXXX"):
        writer.append(topic)
    stores = Stores.opened(session, [writer.write()])
    export(stores, 50, str(tmp_path / "some"), "parquet", ExportSelection(("Bills",)))
    export(stores, 50, str(tmp_path / "all"), "parquet", ExportSelection())
    assert parquet(str(tmp_path / "some"))["topic"].to_pylist() == ["Bills"]
    assert sorted(parquet(str(tmp_path / "all"))["topic"].to_pylist()) == ["Bills", "Orders"]
    with pytest.raises(WrongOption, match="use a local directory"):
        export(stores, 50, "s3a://bucket/out", "iceberg", ExportSelection())
    (tmp_path / "some" / "_export.json").write_text("[]")
    with pytest.raises(StoreReadError, match="does not contain the progress of a job"):
        export(stores, 50, str(tmp_path / "some"), "parquet", ExportSelection(("Bills",)))


def test_what_the_java_of_a_killed_export_writes_later_is_no_part_of_the_table(
    session: SparkSession, writer: StoreWriter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A driver in Python can be killed alone: its Java ends the write that it began."""
    put(writer, 0)
    store, out, aside = writer.write(), tmp_path / "out", tmp_path / "aside"
    moved, folders = export_module._moved, list[Path]()

    def killed(system: fs.FileSystem, root: str, folder: str, prefix: str) -> list[Added]:
        folders.append(Path(root, folder))
        if len(folders) == 1:
            shutil.copytree(folders[0], aside)
            raise KeyboardInterrupt
        shutil.copytree(aside, folders[0], dirs_exist_ok=True)
        return moved(system, root, folder, prefix)

    monkeypatch.setattr(export_module, "_moved", killed)
    with pytest.raises(KeyboardInterrupt):
        exported(session, store, out, "parquet")
    assert exported(session, store, out, "parquet") == 1
    assert places("parquet", out) == writer.positions
    assert folders[0] != folders[1]
