"""Exports in catalogs that warehouses have: Iceberg's by REST, Hive's metastore by pyiceberg and by Spark's own settings."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyiceberg.catalog import load_catalog
from pyspark.sql import SparkSession

from interop.peers.catalogs import HiveMetastore, RestCatalog
from interop.peers.java_objects import JavaObjects
from interop.peers.other_systems import clients, clients_problem
from interop.peers.requirements import require_java, unavailable
from interop.peers.spark_cluster import SparkHome
from tests.docs.blocks import ROOT, blocks
from tests.spark.conftest import session, writer
from tests.spark.stores import BORN_MS, StoreWriter
from twisted_mq.spark.commands.export import ExportSelection, export
from twisted_mq.spark.commands.stores import Stores

__all__ = ["session", "writer"]
pytestmark = pytest.mark.peer
PAGE = ROOT / "docs" / "how-to" / "run-spark-jobs.md"
DAY_MS = 86_400_000


def started(server: JavaObjects) -> Iterator[JavaObjects]:
    require_java()
    server.directory.mkdir()
    try:
        server.start()
        yield server
    finally:
        server.stop()


@pytest.fixture
def rest(tmp_path: Path) -> Iterator[JavaObjects]:
    yield from started(RestCatalog(tmp_path / "rest"))


@pytest.fixture
def hive(tmp_path: Path) -> Iterator[JavaObjects]:
    yield from started(HiveMetastore(tmp_path / "hive"))


def check_table(catalog: dict[str, str], session: SparkSession, writer: StoreWriter, out: Path) -> None:
    """Export twice, the second time with a merge, and read by pyiceberg."""
    for number in range(2):
        writer.append("Orders", b"%d" % number)
        wanted = ExportSelection(catalog=catalog, table="lake.orders", compact=number == 1)
        export(Stores.opened(session, [writer.write()]), 50, str(out), "iceberg", wanted)
    table = load_catalog(**catalog).load_table("lake.orders")
    rows = table.scan().to_arrow().sort_by("physicalOffset")
    assert rows["physicalOffset"].to_pylist() == writer.positions
    assert [task.file.file_path.startswith(str(out)) for task in table.scan().plan_files()] == [True]
    assert not (out / "catalog.db").exists()


def test_iceberg_by_rest(rest: RestCatalog, session: SparkSession, writer: StoreWriter, tmp_path: Path) -> None:
    check_table({"name": "central", "type": "rest", "uri": rest.uri}, session, writer, tmp_path / "out")


def test_iceberg_in_a_metastore(
    hive: HiveMetastore,
    session: SparkSession,
    writer: StoreWriter,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    problem = clients_problem()
    if problem is not None:
        unavailable(problem)
    monkeypatch.syspath_prepend(str(clients()))
    properties = {"type": "hive", "uri": hive.uri, "hive.hive2-compatible": "true"}
    check_table({"name": "central", **properties}, session, writer, tmp_path / "out")


def test_parquet_in_a_metastore_by_spark_s_own_settings(
    hive: HiveMetastore, session: SparkSession, writer: StoreWriter, tmp_path: Path
) -> None:
    """Two days, then a third one: the lines of the manual, with this metastore and directory."""
    home = SparkHome.made(tmp_path)
    (lines,) = (block.text for block in blocks(PAGE) if "MSCK REPAIR" in block.text)
    for shown, here in (("thrift://metastore:9083", hive.uri), ("/data/messages", str(tmp_path / "out"))):
        assert shown in lines
        lines = lines.replace(shown, here)
    create, repair = lines.split("# after later exports\n")
    asked = "spark-sql -e \"SELECT concat('seen ', topic, ' ', day, ' ', count(*)) FROM messages GROUP BY topic, day\""
    for number, line in enumerate((create, repair)):
        for day in range(2):
            writer.append("Orders", b"%d" % day, born_timestamp=BORN_MS + DAY_MS * (number + day))
        export(Stores.opened(session, [writer.write()]), 50, str(tmp_path / "out"), "parquet", ExportSelection())
        done = home.run(["bash", "-c", f"set -e\n{line}"])
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    said = home.run(["bash", "-c", asked])
    counts = [int(count) for count in re.findall(r"^seen Orders \S+ (\d+)$", said.stdout, re.MULTILINE)]
    assert sorted(counts) == [1, 1, 2], said.stdout[-2000:] + said.stderr[-4000:]
