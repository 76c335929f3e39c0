"""Drivers, each in a process of its own that may be killed: `python -m tests.spark_proof.driver JOB SPEC`, SPEC in JSON.

stream   a topic into Parquet with a checkpoint until it is ended; a query that fails is started again
sink     numbered rows to a topic, in one batch of several tasks
"""

from __future__ import annotations

import datetime
import json
import sys
import time
from pathlib import Path
from typing import Any

from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming import StreamingQuery

from tests.spark.java import INTERPRETED, SHORT_LIVED
from twisted_mq.spark.session import SETTINGS, local_session

LOOK_SECONDS = 0.5
CHECKPOINT, ROWS, PROGRESS = "checkpoint", "rows", "progress.jsonl"
FAILED = "query failed, started again"


def started_query(session: SparkSession, spec: dict[str, Any]) -> StreamingQuery:
    out = Path(spec["out"])
    rows = session.readStream.format("rocketmq").options(**spec["options"]).load()
    return (
        rows.select("queueId", "queueOffset", F.col("body").cast("string").alias("text"))
        .writeStream.format("parquet")
        .option("checkpointLocation", str(out / CHECKPOINT))
        .start(str(out / ROWS))
    )


def note_progress(query: StreamingQuery, path: Path, noted: int) -> int:
    """Append batches behind `noted`: (id, end offsets, when it was done in ms); the last id."""
    with path.open("a") as file:
        for progress in query.recentProgress:
            if progress["batchId"] > noted and progress["numInputRows"]:
                noted = progress["batchId"]
                began = time_ms(progress["timestamp"])
                line = (
                    noted,
                    offsets_of(progress["sources"][0]["endOffset"]),
                    began + progress["durationMs"]["triggerExecution"],
                )
                file.write(json.dumps(line) + "\n")
    return noted


def offsets_of(told: Any) -> Any:
    """As a tree, which Spark gives as such or as JSON."""
    return json.loads(told) if isinstance(told, str) else told


def time_ms(text: str) -> int:
    """Parse Spark's `2026-11-20T23:18:54.123Z`."""
    return round(datetime.datetime.fromisoformat(text).timestamp() * 1000)


def stream(session: SparkSession, spec: dict[str, Any]) -> None:
    noted = -1
    while True:
        query = started_query(session, spec)
        try:
            while not query.awaitTermination(LOOK_SECONDS):
                noted = note_progress(query, Path(spec["out"]) / PROGRESS, noted)
        except StreamingQueryException as error:
            print(f"{FAILED}: {error}", flush=True)
            time.sleep(LOOK_SECONDS)


def sink(session: SparkSession, spec: dict[str, Any]) -> None:
    """`rows` numbered bodies in `tasks` tasks; each row takes its time, so that tasks last."""
    rows = session.range(spec["first"], spec["first"] + spec["rows"], 1, spec["tasks"]).select(
        F.col("id").cast("string").alias("body")
    )
    slow = rows.mapInPandas(lambda frames: _paced(frames, spec["seconds_a_row"]), "body string")
    slow.write.format("rocketmq").options(**spec["options"]).mode("append").save()
    print("written", flush=True)


def _paced(frames: Any, seconds_a_row: float) -> Any:
    for frame in frames:
        for begin in range(0, len(frame), 50):
            part = frame.iloc[begin : begin + 50]
            time.sleep(seconds_a_row * len(part))
            yield part


JOBS = {"stream": stream, "sink": sink}


def main(job: str, text: str) -> None:
    spec = json.loads(text)
    settings = {
        "spark.driver.extraJavaOptions": f"{SETTINGS['spark.driver.extraJavaOptions']} {SHORT_LIVED}",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "100",
        **INTERPRETED,
    }
    JOBS[job](local_session(f"proof-{job}", cores=f"2,{spec['tries']}", settings=settings), spec)


if __name__ == "__main__":
    main(*sys.argv[1:])
