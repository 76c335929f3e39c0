"""An export as a table to work with: small files are merged, columns are added, catalogs are chosen, readers skip files."""

from __future__ import annotations

import datetime
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import attrs
import deltalake
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from moto.server import ThreadedMotoServer
from pyarrow import fs
from pyiceberg.catalog import load_catalog
from pyiceberg.catalog.sql import SqlCatalog
from pyspark.sql import SparkSession

from tests.spark.commands.test_export import READERS, iceberg, places, put
from tests.spark.stores import StoreWriter
from twisted_mq.cli.spark.following import COMPACT_TURNS, follow, followed, of_turn
from twisted_mq.spark.commands.alone import alone
from twisted_mq.spark.commands.compaction import Compacted, Part, merges
from twisted_mq.spark.commands.export import ExportSelection, export
from twisted_mq.spark.commands.iceberg_table import IcebergDirectory
from twisted_mq.spark.commands.parquet_directory import ParquetDirectory
from twisted_mq.spark.commands.stores import Stores
from twisted_mq.spark.commands.targets import ExportPlace
from twisted_mq.spark.errors import StoreReadError, WrongOption

KINDS = sorted(READERS)
SMALL = ExportSelection(compact=True)


def data_files(kind: str, out: Path) -> list[str]:
    """The present files of a table."""
    if kind == "iceberg":
        table = SqlCatalog("rocketmq", uri=f"sqlite:///{out}/catalog.db").load_table("rocketmq.messages")
        return [task.file.file_path for task in table.scan().plan_files()]
    if kind == "delta":
        return list(deltalake.DeltaTable(str(out)).file_uris())
    return list(map(str, out.rglob("[!_]*.parquet")))


@pytest.mark.parametrize("kind", KINDS)
def test_small_files_become_one_and_later_ones_join(
    session: SparkSession, writer: StoreWriter, tmp_path: Path, kind: str
) -> None:
    def run(wanted: ExportSelection) -> dict[str, int]:
        stores = Stores.opened(session, [writer.write()])
        return {one.name: one.value for one in export(stores, 50, str(out), kind, wanted).figures}

    out = tmp_path / "out"
    for begin in (0, 4):
        for number in range(begin, begin + 4):
            writer.append("Orders", b"%d" % number)
        run(ExportSelection())
    for wanted, merged, made in ((SMALL, 2, 1), (SMALL, 0, 0)):
        figures = run(wanted)
        assert (figures["small files merged"], figures["into"]) == (merged, made)
        assert places(kind, out) == writer.positions
        assert len(data_files(kind, out)) == 1
    writer.append("Orders", b"late")
    figures = run(SMALL)
    assert (figures["messages"], figures["small files merged"], figures["into"]) == (1, 2, 1)
    assert places(kind, out) == writer.positions
    assert {row["topic"] for row in READERS[kind](str(out)).to_pylist()} == {"Orders"}


@pytest.mark.parametrize("kind", KINDS)
def test_columns_may_be_added(session: SparkSession, writer: StoreWriter, tmp_path: Path, kind: str) -> None:
    few = ExportSelection(columns=("physicalOffset", "body"))
    for number, wanted in enumerate((few, ExportSelection(compact=True))):
        writer.append("Orders", b"%d" % number, {"TAGS": "new"})
        export(Stores.opened(session, [writer.write()]), 50, str(tmp_path / "out"), kind, wanted)
    rows = READERS[kind](str(tmp_path / "out")).sort_by("physicalOffset").to_pylist()
    assert [(row["body"], row["tags"], row["topic"]) for row in rows] == [
        (b"0", None, "Orders"), (b"1", "new", "Orders"),
    ]  # fmt: skip
    with pytest.raises(StoreReadError, match="cannot be continued with"):
        export(Stores.opened(session, [writer.write()]), 50, str(tmp_path / "out"), kind, few)


def test_a_catalog_by_option(session: SparkSession, writer: StoreWriter, tmp_path: Path) -> None:
    writer.append("Orders")
    catalog = {
        "name": "central",
        "type": "sql",
        "uri": f"sqlite:///{tmp_path}/central.db",
        "warehouse": str(tmp_path / "warehouse"),
    }
    stores = Stores.opened(session, [writer.write()])
    export(stores, 50, str(tmp_path / "out"), "iceberg", ExportSelection(catalog=catalog, table="lake.mq.orders"))
    table = SqlCatalog(**catalog).load_table("lake.mq.orders")
    assert table.scan().to_arrow()["physicalOffset"].to_pylist() == writer.positions
    assert not (tmp_path / "out" / "catalog.db").exists()
    for wanted, reason in (
        (ExportSelection(catalog={"type": "moon"}), "option catalog='type'"),
        (ExportSelection(catalog=catalog, table="orders"), "a name has a namespace"),
    ):
        with pytest.raises(WrongOption, match=reason):
            export(stores, 50, str(tmp_path / "out"), "iceberg", wanted)


def test_a_table_in_glue_grows_and_is_merged(session: SparkSession, writer: StoreWriter, tmp_path: Path) -> None:
    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    keys = {"glue.region": "us-east-1", "glue.access-key-id": "key", "glue.secret-access-key": "secret"}
    catalog = {"name": "central", "type": "glue", "glue.endpoint": f"http://{host}:{port}", **keys}
    try:
        for number in range(2):
            writer.append("Orders", b"%d" % number)
            wanted = ExportSelection(catalog=catalog, table="lake.orders", compact=number == 1)
            export(Stores.opened(session, [writer.write()]), 50, str(tmp_path / "out"), "iceberg", wanted)
        table = load_catalog(**catalog).load_table("lake.orders")
        rows = table.scan().to_arrow().sort_by("physicalOffset")
        assert rows["physicalOffset"].to_pylist() == writer.positions
        assert len(list(table.scan().plan_files())) == 1
    finally:
        server.stop()


def test_readers_open_the_files_of_a_topic_and_day_alone(
    session: SparkSession, writer: StoreWriter, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for number in range(6):
        put(writer, number)
    stores = Stores.opened(session, [writer.write()])
    for kind in KINDS:
        export(stores, 50, str(tmp_path / kind), kind, ExportSelection())
    day = "2026-11-20"
    rows = session.read.parquet(str(tmp_path / "parquet")).where(f"topic = 'Orders' and day = '{day}'")
    rows.explain()
    plan = capsys.readouterr().out
    assert "PartitionFilters: [isnotnull(topic" in plan and f"= {day})]" in plan
    assert len({row[0] for row in rows.selectExpr("input_file_name()").collect()}) == 1
    assert len(data_files("parquet", tmp_path / "parquet")) == 6
    table = SqlCatalog("rocketmq", uri=f"sqlite:///{tmp_path}/iceberg/catalog.db").load_table("rocketmq.messages")
    found = table.scan(row_filter=f"topic == 'Orders' and storeTimestamp < '{day}T23:59:59+00:00'").plan_files()
    assert len(list(found)) == 1
    delta = deltalake.DeltaTable(str(tmp_path / "delta"))
    assert len(delta.file_uris(file_pruning_predicate=f"topic = 'Orders' and day = '{day}'")) == 1
    actions = pa.table(delta.get_add_actions(flatten=True)).to_pylist()
    assert sorted(one["min.physicalOffset"] for one in actions) == writer.positions


def test_several_stores_at_once_and_an_error_in_one(
    session: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writers = [StoreWriter(tmp_path / name / "store") for name in ("a", "b", "c")]
    for one in writers:
        for _ in range(5):
            one.append("Orders", b"x" * 100)
    paths = [one.write() for one in writers]
    add = ParquetDirectory.add

    def add_but_one(target: ParquetDirectory, done: object, files: object) -> None:
        if done.store.name == paths[1]:  # type: ignore[attr-defined]
            raise OSError("the disk of one store is full")
        add(target, done, files)  # type: ignore[arg-type]

    monkeypatch.setattr(ParquetDirectory, "add", add_but_one)
    with pytest.raises(OSError, match="the disk of one store"):
        export(Stores.opened(session, paths), 50, str(tmp_path / "out"), "parquet", ExportSelection())
    monkeypatch.undo()
    export(Stores.opened(session, paths), 50, str(tmp_path / "out"), "parquet", ExportSelection())
    rows = READERS["parquet"](str(tmp_path / "out")).to_pylist()
    assert sorted((row["store"], row["physicalOffset"]) for row in rows) == sorted(
        (path, place) for path, one in zip(paths, writers, strict=True) for place in one.positions
    )


def test_a_second_export_is_refused(session: SparkSession, writer: StoreWriter, tmp_path: Path) -> None:
    writer.append("Orders")
    stores = Stores.opened(session, [writer.write()])
    with alone(str(tmp_path / "out")), pytest.raises(StoreReadError, match="another export writes there"):
        export(stores, 50, str(tmp_path / "out"), "parquet", ExportSelection())
    assert export(stores, 50, f"file://{tmp_path}/out", "parquet", ExportSelection()).figures[0].value == 1


def test_an_export_that_follows_adds_what_comes(session: SparkSession, writer: StoreWriter, tmp_path: Path) -> None:
    writer.append("Orders")
    waits = []

    def wait(seconds: float) -> bool:
        waits.append(seconds)
        writer.append("Orders")
        writer.write()
        return len(waits) == 3

    times = iter([0.0, 2.0, 60.0, 125.0, 130.0, 131.0])
    stores = Stores.opened(session, [writer.write()])
    runs = follow(
        stores,
        lambda now: export(now, 50, str(tmp_path / "out"), "parquet", ExportSelection()),
        60,
        lambda: next(times),
        wait,
    )
    assert [found.figures[0].value for found in runs] == [1, 1, 1]
    assert waits == [58.0, 0.0, 59.0]
    assert places("parquet", tmp_path / "out") == writer.positions[:3]


# without Spark


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=["SIGTERM", "SIGINT"])
def test_a_signal_ends_it_after_the_run(number: int, capsys: pytest.CaptureFixture[str]) -> None:
    turns: list[int] = []

    @attrs.frozen
    class Found:
        sound: bool
        tables: tuple[object, ...] = (attrs.make_class("Rows", {"rows": attrs.field(default=())})(),)
        figures: tuple[object, ...] = ()

    @attrs.frozen
    class NoStores:
        def reopened(self) -> NoStores:
            return self

    def run(stores: object, turn: int) -> object:
        turns.append(turn)
        if turn == 2:
            os.kill(os.getpid(), number)
        return Found(turn != 1)

    handler = signal.getsignal(number)
    told = followed(NoStores(), 0, run)  # type: ignore[arg-type]
    assert (turns, told.sound) == ([0, 1, 2], False)
    assert signal.getsignal(number) is handler


def test_each_60th_export_compacts() -> None:
    turns = [turn for turn in range(2 * COMPACT_TURNS + 1) if of_turn(SMALL, turn).compact]
    assert turns == [0, 60, 120]
    assert not of_turn(ExportSelection(), 60).compact


@pytest.mark.parametrize(
    ("before", "may"),
    [
        ('{"columns": ["a"], "topics": []}', True),
        ('{"columns": ["a", "b", "c"], "topics": []}', False),
        ('{"columns": ["a"], "topics": ["T"]}', False),
        ('{"columns": "a", "topics": []}', False),
        ("Orders of 2026", False),
        ("[]", False),
        (None, False),
    ],
)
def test_which_tables_are_continued(before: str | None, may: bool) -> None:
    place = ExportPlace("/out", {"columns": ["a", "b"], "topics": []})
    if may:
        place.check_same(before)
    else:
        with pytest.raises(StoreReadError, match=r"/out: was started with .*, and cannot be continued with"):
            place.check_same(before)


def test_which_files_are_merged() -> None:
    files = [Part(f"t/d={day}/{name}", size) for day, name, size in (
        (1, "a", 10), (1, "b", 49), (1, "c", 50), (1, "d", 45), (1, "e", 40), (2, "a", 3),
    )]  # fmt: skip
    found = [[part.path for part in merge.parts] for merge in merges(reversed(files), 100)]
    assert found == [["t/d=1/a", "t/d=1/b"], ["t/d=1/d", "t/d=1/e"]]


class KilledFileSystem:
    """A file system that ends at its n-th change."""

    def __init__(self, system: fs.FileSystem, left: int) -> None:
        self._system, self.left = system, left

    def __getattr__(self, name: str) -> Callable[..., object]:
        if name in ("move", "delete_file", "create_dir", "open_output_stream"):
            if not self.left:
                raise KeyboardInterrupt
            self.left -= 1
        return getattr(self._system, name)  # type: ignore[no-any-return]


def plain_table(root: Path, days: int = 2, files: int = 3) -> list[int]:
    """A table by topic and day, and its numbers."""
    numbers: Iterator[int] = iter(range(1 << 30))
    for day in range(days):
        folder = root / "topic=Orders" / f"day=2026-11-2{day}"
        folder.mkdir(parents=True)
        for file in range(files):
            pq.write_table(pa.table({"n": [next(numbers) for _ in range(4)]}), folder / f"key-{file}.parquet")
    return list(range(days * files * 4))


def test_an_iceberg_table_has_the_same_rows_wherever_a_compaction_is_killed(tmp_path: Path) -> None:
    target = IcebergDirectory(ExportPlace(str(tmp_path), {"columns": [], "topics": []}))
    moment = datetime.datetime(2026, 11, 20, tzinfo=datetime.UTC)
    folder = tmp_path / "topic_=Orders" / "day_=2026-11-20"
    folder.mkdir(parents=True)
    for number in range(3):
        rows = pa.table(
            {"topic": ["Orders"], "storeTimestamp": pa.array([moment], pa.timestamp("us", "UTC")), "n": [number]}
        )
        pq.write_table(rows, folder / f"key-{number}.parquet")
    table = target._table = target._created(rows.schema)
    table.add_files([str(path) for path in sorted(folder.iterdir())])
    system = target._system
    for left in range(10):
        target._system = KilledFileSystem(system, left)  # type: ignore[assignment]
        try:
            done = target.compact(1 << 20)
        except KeyboardInterrupt:
            assert sorted(iceberg(str(tmp_path))["n"].to_pylist()) == [0, 1, 2]
        else:
            break
    assert (left, done) == (3, Compacted(3, 1))
    assert sorted(iceberg(str(tmp_path))["n"].to_pylist()) == [0, 1, 2]
    assert len(data_files("iceberg", tmp_path)) == 1


def test_a_compaction_that_is_killed_anywhere_is_finished(tmp_path: Path) -> None:
    for left in range(30):
        root = tmp_path / str(left)
        numbers = plain_table(root)
        place = ExportPlace(str(root), {"columns": [], "topics": []})
        killed = ParquetDirectory(place)
        killed._system = KilledFileSystem(killed._system, left)  # type: ignore[assignment]
        try:
            done = killed.compact(1 << 20)
        except KeyboardInterrupt:
            ParquetDirectory(place)  # finishes it
            assert sorted(READERS["parquet"](str(root))["n"].to_pylist()) == numbers
            ParquetDirectory(place).compact(1 << 20)
        else:
            assert done == Compacted(6, 2)
            break
        assert sorted(READERS["parquet"](str(root))["n"].to_pylist()) == numbers
        assert len(list(root.rglob("day=*/*.parquet"))) == 2
    assert left > 12
