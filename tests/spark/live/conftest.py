"""One broker, in a process of its own, for all tests of live queues."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.spark.live.brokers import Broker
from tests.support.embedded import EmbeddedProcess


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    store = str(tmp_path_factory.mktemp("live"))
    options = ("mapped_file_size_commit_log=16777216", "enable_property_filter=true")
    with EmbeddedProcess(store, options=options) as server:
        yield Broker(server.name_server, server.broker)
