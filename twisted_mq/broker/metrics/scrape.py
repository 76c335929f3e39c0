"""Holds what one answer is made from: the broker, and values that several metrics share, computed once."""

from __future__ import annotations

import functools
import os
from typing import TYPE_CHECKING

from twisted_mq.broker.metrics.lag import Lag, lags
from twisted_mq.protocol.bodies import ConsumeStatus
from twisted_mq.storage.files.disk_space import DiskSpace, disk_space
from twisted_mq.turns import Work

if TYPE_CHECKING:
    from twisted_mq.broker.controller import BrokerController
    from twisted_mq.remoting.server import RemotingServerFactory


class Scrape:
    """The values for one answer. `prepare` fills `lags`."""

    def __init__(self, broker: BrokerController, server: RemotingServerFactory) -> None:
        self.broker = broker
        self.server = server
        self.lags: list[Lag] = []
        self.now_ms = broker.wall_ms()
        self.timers_ms = broker.now_ms()

    def prepare(self) -> Work[None]:
        """Compute the lags, in slices."""
        self.lags = yield from lags(self.broker)

    @functools.cached_property
    def disk(self) -> DiskSpace | None:
        """Return the disk that the commit log is on; None for a store in memory."""
        folder = self.broker.options.commit_log_path
        return disk_space(folder) if os.path.isdir(folder) else None

    @property
    def not_flushed(self) -> int:
        """Return the bytes of the log that are not on disk yet."""
        store = self.broker.store
        return store.max_physical_offset() - store.flushed_offset()

    @functools.cached_property
    def topics(self) -> list[str]:
        """Return all topics that have a queue."""
        return self.broker.store.topics()

    @functools.cached_property
    def told_by_consumers(self) -> list[tuple[tuple[str, str, str, str], ConsumeStatus]]:
        """Return the rates by address, client id, group and topic."""
        return self.broker.consumer_figures.rows()

    @functools.cached_property
    def runtime(self) -> dict[str, str]:
        """Return the values of GET_BROKER_RUNTIME_INFO."""
        from twisted_mq.broker.processors.runtime_info import RuntimeInfoProcessor

        return RuntimeInfoProcessor(self.broker).table()
