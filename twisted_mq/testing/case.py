"""Provides the embedded server for TestCases of unittest and trial."""

from __future__ import annotations

import unittest
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from twisted_mq.testing.server import EmbeddedServer

if TYPE_CHECKING:
    Case = unittest.TestCase
else:
    Case = object


class BrokerMixin(Case):
    """Gives each test an EmbeddedServer, `mq_server`, and a topic, `mq_topic`. Name it before the TestCase."""

    mq_settings: ClassVar[Mapping[str, Any]] = {}
    """Arguments of EmbeddedServer."""
    mq_server: EmbeddedServer
    mq_topic: str

    def setUp(self) -> None:
        super().setUp()
        self.mq_server = EmbeddedServer(**self.mq_settings).start()
        self.addCleanup(self.mq_server.stop)
        self.mq_topic = self.mq_server.new_topic(self.id().rpartition(".")[2])
