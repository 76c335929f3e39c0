"""Stores on HDFS, and an export to it: by `mq spark` in a process that has hdfs-native, and no library of Hadoop."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset
import pytest
from pyarrow import fs
from pyspark.sql.streaming.datasource import ReadAllAvailable

from interop.peers.hdfs import HdfsCluster
from interop.peers.other_systems import clients, clients_problem
from interop.peers.process import wait_until
from interop.peers.requirements import require_java, unavailable
from tests.spark.stores import StoreWriter
from twisted_mq.spark.file_systems import locate
from twisted_mq.spark.source.options import read_options
from twisted_mq.spark.source.store_reader import StoreReader
from twisted_mq.spark.source.stores import stores_named
from twisted_mq.spark.source.stream_reader import StoreStreamReader

pytestmark = pytest.mark.peer
COLUMNS = ("physicalOffset", "queueOffset", "tags", "body")
EXPORT_SECONDS = 300


@pytest.fixture
def hdfs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The URI of an empty cluster, which this process reaches by hdfs-native."""
    require_java()
    problem = clients_problem()
    if problem is not None:
        unavailable(problem)
    monkeypatch.syspath_prepend(str(clients()))
    server = HdfsCluster(tmp_path / "hdfs")
    server.directory.mkdir()
    try:
        server.start()
        wait_until(lambda: is_up(server.uri), "the data node takes blocks")
        yield server.uri
    finally:
        server.stop()
        locate.cache_clear()


def is_up(uri: str) -> bool:
    """Return True if a file can be written."""
    try:
        system, path = locate(f"{uri}/written")
        with system.open_output_stream(path) as file:
            file.write(b"x")
    except (OSError, RuntimeError):  # not yet
        return False
    return True


def uploaded(local: str, uri: str) -> None:
    system, path = locate(uri)
    fs.copy_files(local, path, fs.LocalFileSystem(), system)


def rows(path: str) -> list[dict[str, object]]:
    reader = StoreReader(read_options({"path": path, "maxPartitionBytes": "100k"}), COLUMNS)
    batches = [batch for split in reader.partitions() for batch in reader.read(split)]
    found: list[dict[str, object]] = pa.Table.from_batches(batches).to_pylist()
    return found


def test_rows_equal_local_ones_and_an_export_goes_there(hdfs: str, tmp_path: Path) -> None:
    writer = StoreWriter(tmp_path / "store", file_size=1 << 20)
    for number in range(500):
        writer.append("Orders", b"x" * (number * 37 % 9000), {"TAGS": "a", "KEYS": str(number)})
    local = rows(writer.write())
    assert len(local) == 500
    uploaded(str(writer.root), f"{hdfs}/brokers/a b/store")
    (store,) = stores_named([f"{hdfs}/brokers/*/store"])
    assert store.name == f"{hdfs}/brokers/a b/store"
    assert rows(store.uri) == local
    stream = StoreStreamReader(read_options({"path": store.uri}), ["physicalOffset"])
    start = stream.initialOffset()
    parts = stream.partitions(start, stream.latestOffset(start, ReadAllAvailable()))
    batches = [batch for part in parts for batch in stream.read(part)]
    assert [offset for batch in batches for offset in batch["physicalOffset"].to_pylist()] == writer.positions
    command = [sys.executable, "-m", "twisted_mq.cli.spark", "export", store.uri, "--out", f"{hdfs}/lake", "--json"]
    environment = {**os.environ, "PYTHONPATH": str(clients())}
    for added in (500, 0):
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=EXPORT_SECONDS)
        assert done.returncode == 0, done.stdout + done.stderr[-4000:]
        assert json.loads(done.stdout)["figures"]["messages"] == added
    system, path = locate(f"{hdfs}/lake")
    table = pa.dataset.dataset(path, filesystem=system, partitioning="hive").to_table()
    assert sorted(table["physicalOffset"].to_pylist()) == writer.positions
