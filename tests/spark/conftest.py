"""A Spark session for all tests below tests/spark: it takes seconds to start."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.spark.java import SHORT_LIVED
from tests.spark.live.brokers import Broker
from tests.spark.read_counts import ReadCounts, read_counts
from tests.spark.stores import StoreWriter
from tests.support.captures import unpack_store
from tests.support.embedded import EmbeddedProcess
from twisted_mq.spark.session import SETTINGS, local_session

__all__ = ["ReadCounts", "read_counts"]


@pytest.fixture(scope="session")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    warehouse = str(tmp_path_factory.mktemp("warehouse"))
    settings = {
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.warehouse.dir": warehouse,
        "spark.driver.extraJavaOptions": f"{SETTINGS['spark.driver.extraJavaOptions']} {SHORT_LIVED}",
    }
    started = local_session("tests", cores=2, settings=settings)
    yield started
    started.stop()


@pytest.fixture
def writer(tmp_path: Path) -> StoreWriter:
    return StoreWriter(tmp_path / "store")


@pytest.fixture(scope="session")
def captured(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], str]:
    """The path of a recorded store, unpacked once a run; tests do not write into it."""
    unpacked: dict[str, str] = {}

    def path(store: str) -> str:
        if store not in unpacked:
            unpacked[store] = str(unpack_store(store, tmp_path_factory.mktemp("captured")))
        return unpacked[store]

    return path


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """Run a broker in its own process, for all tests that make blocking calls."""
    store = str(tmp_path_factory.mktemp("live"))
    options = ("mapped_file_size_commit_log=16777216", "enable_property_filter=true")
    with EmbeddedProcess(store, options=options) as server:
        yield Broker(server.name_server, server.broker, store=store)
