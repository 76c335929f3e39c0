"""A user's program on a cluster whose Python has nothing of this project but the archive of `mq spark pack`.

spark-submit --py-files rocketmq.zip spark_program.py STORE NAMESERVER FOLDER
SPARK_REMOTE=sc://localhost:15002 python spark_program.py STORE NAMESERVER FOLDER

Reads a store and live queues, sends what the store has to the topic Copies, and prints as JSON what it saw. All of it is done
as batches, and with spark-submit as streams, too.
"""

import json
import os
import sys
from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.streaming import DataStreamWriter

from twisted_mq.spark.pack import bring_pack
from twisted_mq.spark.tables import register


def where(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the Python of a task, and the path of the project there."""
    import twisted_mq.spark

    for _ in batches:
        yield pa.RecordBatch.from_pydict({"python": [sys.executable], "file": [twisted_mq.spark.__file__]})


def main(store: str, name_server: str, folder: str) -> None:
    session = SparkSession.builder.getOrCreate()
    if "SPARK_REMOTE" in os.environ:
        bring_pack(session)
    try:
        print(json.dumps(seen(session, store, name_server, folder)))
    finally:
        session.stop()


def seen(session: SparkSession, store: str, name_server: str, folder: str) -> dict[str, object]:
    """Return the results of the cluster's Python."""
    register(session)
    live = {"nameServer": name_server, "topic": "Copies"}
    stored = session.read.format("rocketmq").option("topic", "Orders").load(store)
    tasks = session.range(0, 4, 1, 4).mapInArrow(where, "python string, file string").collect()
    found: dict[str, object] = {"tasks": tasks, "stored": sorted(bytes(row.body).decode() for row in stored.collect())}
    sink = {**live, "compression": "zstd", "compressOver": "1"}
    stored.select("body", "tags").write.format("rocketmq").options(**sink).mode("append").save()
    sent = session.read.format("rocketmq").options(**live).load()
    found["sent"] = sorted(bytes(row.body).decode() for row in sent.collect())
    found["entries"] = session.read.format("rocketmq.consumequeue").load(store).count()
    if "SPARK_REMOTE" not in os.environ:
        found["streamed"] = streamed(session, store, live, folder)
    return found


def streamed(session: SparkSession, store: str, live: dict[str, str], folder: str) -> int:
    """Return the number of offsets in live queues that a stream read, after a stream that sent the store's messages."""
    copy = session.readStream.format("rocketmq").load(store).select("body", "tags").writeStream.format("rocketmq")
    run(copy.options(checkpointLocation=f"{folder}/copy", **live))
    copied = session.readStream.format("rocketmq").options(startingOffsets="earliest", **live).load()
    rows = copied.select("queueId", "queueOffset").writeStream.format("parquet").option("path", f"{folder}/rows")
    run(rows.option("checkpointLocation", f"{folder}/live"))
    return len(set(session.read.parquet(f"{folder}/rows").collect()))


def run(stream: DataStreamWriter) -> None:
    """All that is there."""
    stream.trigger(availableNow=True).start().awaitTermination()


main(*sys.argv[1:])
