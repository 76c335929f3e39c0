"""The local session."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from pyspark.sql import SparkSession

import twisted_mq
import twisted_mq.spark.session
from twisted_mq.spark.session import local_session


def test_workers_run_this_interpreter_and_see_the_project(session: SparkSession) -> None:
    def look(rows):  # type: ignore[no-untyped-def]
        import sys

        import twisted_mq.protocol

        yield sys.executable, twisted_mq.protocol.__file__

    seen = session.sparkContext.parallelize([0], 1).mapPartitions(look).collect()
    project = Path(twisted_mq.__file__).parent
    assert seen == [(sys.executable, str(project / "protocol" / "__init__.py"))]


def test_a_second_call_gives_the_same_session(session: SparkSession) -> None:
    assert local_session("again", cores=1) is session
    assert session.conf.get("spark.sql.session.timeZone") == "UTC"
    assert session.conf.get("spark.driver.bindAddress") == "127.0.0.1"
    assert session.conf.get("spark.ui.enabled") == "false"


def test_the_logging_file_is_there() -> None:
    path = Path(twisted_mq.spark.session.__file__).with_name("log4j2.json")
    assert json.loads(path.read_text())["configuration"]["loggers"]["root"]["level"] == "error"
