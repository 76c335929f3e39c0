"""A local Spark session for jobs on one machine: quiet, without a web page, on loopback only."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from pyspark.sql import SparkSession

import twisted_mq

_PROJECT = str(Path(twisted_mq.__file__).resolve().parent.parent)
_LOGGING = Path(__file__).with_name("log4j2.json")
"""Log settings for errors only; the gateway's level is set because Spark otherwise prints a message about it."""

SETTINGS = {
    "spark.log.level": "ERROR",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "16",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.python.unix.domain.socket.enabled": "true",
    "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={_LOGGING.as_uri()}",
}


def local_session(
    name: str = "rocketmq", cores: int | str = "*", settings: dict[str, str] | None = None
) -> SparkSession:
    """Return a session with the format "rocketmq". Workers run this interpreter and can import this project.

    A process has one session: a second call returns the first one. Needs Java 17.
    """
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    paths = [_PROJECT, *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    os.environ["PYTHONPATH"] = os.pathsep.join(dict.fromkeys(paths))
    builder = SparkSession.builder.appName(name).master(f"local[{cores}]")
    for key, value in {**SETTINGS, **(settings or {})}.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()
