from collections.abc import Iterator

import pytest

from tests.support.faces import cluster, group, ordered_cluster
from twisted_mq.blocking.loop_thread import LoopThread

__all__ = ["cluster", "group", "ordered_cluster"]


@pytest.fixture
def thread() -> Iterator[LoopThread]:
    running = LoopThread()
    yield running
    running.stop()
