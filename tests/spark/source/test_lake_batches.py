"""Streams into Delta and Iceberg tables by foreachBatch: a batch that Spark repeats after a kill is there once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import deltalake
import pytest
from deltalake import CommitProperties, DeltaTable, Transaction
from pyiceberg.catalog.sql import SqlCatalog
from pyspark.sql import DataFrame, SparkSession

from tests.spark.stores import StoreWriter

QUERY = "torches"


def into_delta(out: Path) -> Callable[[DataFrame, int], None]:
    path = str(out)

    def add(batch: DataFrame, number: int) -> None:
        done = DeltaTable(path).transaction_version(QUERY) if DeltaTable.is_deltatable(path) else None
        if done is None or done < number:
            marked = CommitProperties(app_transactions=[Transaction(QUERY, number)])
            deltalake.write_deltalake(path, batch.toArrow(), mode="append", commit_properties=marked)

    return add


def delta_rows(out: Path) -> list[int]:
    return sorted(DeltaTable(str(out)).to_pyarrow_table()["queueOffset"].to_pylist())


def catalog(out: Path) -> SqlCatalog:
    out.mkdir(exist_ok=True)
    return SqlCatalog("lake", uri=f"sqlite:///{out}/catalog.db", warehouse=str(out))


def into_iceberg(out: Path) -> Callable[[DataFrame, int], None]:
    def add(batch: DataFrame, number: int) -> None:
        rows = batch.toArrow()
        lake = catalog(out)
        lake.create_namespace_if_not_exists("mq")
        table = lake.create_table_if_not_exists("mq.torches", rows.schema)
        if int(table.properties.get(QUERY, -1)) < number:
            with table.transaction() as change:
                change.append(rows)
                change.set_properties({QUERY: str(number)})

    return add


def iceberg_rows(out: Path) -> list[int]:
    return sorted(catalog(out).load_table("mq.torches").scan().to_arrow()["queueOffset"].to_pylist())


@pytest.mark.parametrize(
    ("into", "rows"), [(into_delta, delta_rows), (into_iceberg, iceberg_rows)], ids=["delta", "iceberg"]
)
def test_a_repeated_batch_is_there_once(
    session: SparkSession,
    writer: StoreWriter,
    tmp_path: Path,
    into: Callable[[Path], Callable[[DataFrame, int], None]],
    rows: Callable[[Path], list[int]],
) -> None:
    out, checkpoint = tmp_path / "lake", tmp_path / "checkpoint"
    for round in range(2):
        for _ in range(20):
            writer.append(body=b"x" * 300)
        stream = session.readStream.format("rocketmq").option("columns", "queueOffset,body")
        stream = stream.option("maxBytesPerTrigger", "4k").load(writer.write())
        query = stream.writeStream.foreachBatch(into(out)).option("checkpointLocation", str(checkpoint))
        query.trigger(availableNow=True).start().awaitTermination()
        assert rows(out) == list(range(20 * (round + 1)))
        last = max(int(path.name) for path in (checkpoint / "commits").iterdir() if path.name.isdigit())
        assert last >= 1
        for path in (checkpoint / "commits").glob(f"*{last}*"):
            path.unlink()  # the query was killed before it knew that the batch was done
