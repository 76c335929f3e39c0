"""Stores on S3: the rows of local ones, read by ranges."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import boto3
import pyarrow as pa
import pytest
from moto.server import ThreadedMotoServer

from tests.spark.stores import StoreWriter
from twisted_mq.spark.columns.schema import COLUMN_NAMES
from twisted_mq.spark.errors import NoCommitLog
from twisted_mq.spark.source.options import read_options
from twisted_mq.spark.source.store_reader import StoreReader
from twisted_mq.spark.source.stores import stores_named
from twisted_mq.spark.source.stream_reader import StoreStreamReader

COLUMNS = [name for name in COLUMN_NAMES if name != "store"]


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    """The address of a twin of S3 in this process."""
    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"{host}:{port}"
    server.stop()


def uploaded(endpoint: str, local: str, bucket: str) -> str:
    """The query of URIs by which a copy of a store in a new bucket is read."""
    client = boto3.client(
        "s3",
        endpoint_url=f"http://{endpoint}",
        aws_access_key_id="key",
        aws_secret_access_key="secret",
        region_name="us-east-1",
    )
    client.create_bucket(Bucket=bucket)
    for path in Path(local).rglob("*"):
        if path.is_file():
            client.upload_file(str(path), bucket, f"brokers/a/{path.relative_to(local)}")
    return f"endpoint_override={endpoint}&scheme=http&region=us-east-1"


def rows(**options: str) -> list[dict[str, object]]:
    reader = StoreReader(read_options(options), COLUMNS)
    batches = [batch for split in reader.partitions() for batch in reader.read(split)]
    found: list[dict[str, object]] = pa.Table.from_batches(batches).to_pylist()
    return found


def test_rows_equal_local_ones(endpoint: str, tmp_path: Path) -> None:
    writer = StoreWriter(tmp_path / "store", file_size=1 << 20)
    for number in range(500):
        writer.append(body=b"x" * (number * 37 % 9000), properties={"TAGS": "a", "KEYS": str(number)})
    query = uploaded(endpoint, writer.write(), "copies")
    local = rows(path=str(writer.root), maxPartitionBytes="100k")
    assert len(local) == 500
    for scheme in ("s3", "s3a"):
        uri = f"{scheme}://key:secret@copies/brokers/a?{query}"
        assert rows(path=uri, maxPartitionBytes="100k") == local
    found = stores_named([f"s3a://key:secret@copies/brokers/*?{query}"])
    assert [store.name for store in found] == ["s3a://copies/brokers/a"]
    with pytest.raises(NoCommitLog, match="s3a://copies/brokers: holds no commitlog directory"):
        rows(path=f"s3a://key:secret@copies/brokers?{query}")
    stream = StoreStreamReader(read_options({"path": found[0].uri}), ["physicalOffset"])
    end = stream.reportLatestOffset()
    assert end == {"s3a://copies/brokers/a": writer.position}
    parts = stream.partitions(stream.initialOffset(), end)
    batches = [batch for part in parts for batch in stream.read(part)]
    assert [offset for batch in batches for offset in batch["physicalOffset"].to_pylist()] == writer.positions
