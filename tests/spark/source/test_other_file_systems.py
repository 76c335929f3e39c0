"""Stores on S3: the rows of local ones, read by ranges."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import boto3
import pyarrow as pa
import pytest
from moto.server import ThreadedMotoServer
from pyspark.sql.streaming.datasource import ReadAllAvailable

from tests.spark.stores import StoreWriter
from twisted_mq.spark.columns.schema import COLUMN_NAMES
from twisted_mq.spark.errors import NoCommitLog
from twisted_mq.spark.source.options import read_options
from twisted_mq.spark.source.ranges import Gathering
from twisted_mq.spark.source.store_reader import StoreReader
from twisted_mq.spark.source.stores import stores_named
from twisted_mq.spark.source.stream_reader import StoreStreamReader

COLUMNS = [name for name in COLUMN_NAMES if name != "store"]


@attrs.define
class Requests:
    """Requests to S3: a WSGI application in front of its twin."""

    app: Any
    seen: Counter[str] = attrs.field(factory=Counter)

    def __call__(self, environ: dict[str, Any], start: Any) -> Any:
        lists = "list" if "list-type" in environ["QUERY_STRING"] else ""
        self.seen[lists or environ["REQUEST_METHOD"]] += 1
        return self.app(environ, start)

    def take(self) -> Counter[str]:
        """The requests since the last time: lists, HEAD, GET."""
        taken = Counter(self.seen)
        self.seen.clear()
        return taken


@pytest.fixture(scope="module")
def counted() -> Iterator[tuple[str, Requests]]:
    """The address of a twin of S3 in this process, and what it is asked."""
    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    assert server._server is not None
    requests = server._server.app = Requests(server._server.app)
    yield f"{host}:{port}", requests
    server.stop()


@pytest.fixture
def endpoint(counted: tuple[str, Requests]) -> str:
    return counted[0]


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


@pytest.mark.parametrize("every", [2, 8, 40, 400], ids=["dense", "near", "far", "few"])
def test_queues_take_few_more_requests_than_a_scan(
    counted: tuple[str, Requests], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, every: int
) -> None:
    """All sizes are a sixteenth, so that 16 MiB are as 256."""
    monkeypatch.setattr("twisted_mq.spark.source.log_stretch.WINDOW_BYTES", 1 << 18)
    monkeypatch.setattr("twisted_mq.spark.source.open_log.REMOTE", Gathering(1 << 16, 1 << 18, 1 << 20))
    endpoint, requests = counted
    writer = StoreWriter(tmp_path / "store", file_size=1 << 24)
    for number in range(3600):
        writer.append("Small" if number % every == every // 2 else "Large", b"x" * 4000)
    query = uploaded(endpoint, writer.write(), f"queues{every}")
    options = {"path": f"s3://key:secret@queues{every}/brokers/a?{query}", "topic": "Small"}
    counts, found = [], []
    for through in ("log", "queues"):
        reader = StoreReader(read_options({**options, "through": through}), ["queueOffset"])
        splits = reader.partitions()
        requests.take()
        found.append([row for split in splits for batch in reader.read(split) for row in batch[0].to_pylist()])
        counts.append(requests.take())
    assert found[0] == found[1] == list(range(3600 // every))
    assert counts[1]["GET"] <= 1.2 * counts[0]["GET"], counts


def test_a_trigger_lists_a_store_once(counted: tuple[str, Requests], tmp_path: Path) -> None:
    endpoint, requests = counted
    writer = StoreWriter(tmp_path / "store", file_size=1 << 16)
    for _ in range(100):
        writer.append(body=b"x" * 1000)
    query = uploaded(endpoint, writer.write(), "triggers")
    stream = StoreStreamReader(
        read_options({"path": f"s3://key:secret@triggers/brokers/a?{query}"}), ["physicalOffset"]
    )
    start = stream.initialOffset()
    requests.take()
    end = stream.latestOffset(start, ReadAllAvailable())
    once = requests.take()
    stream.reportLatestOffset()
    assert not requests.take()
    stream.partitions(start, end)
    assert requests.take()["list"] < once["list"]
