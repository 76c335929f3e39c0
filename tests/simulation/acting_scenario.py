"""Worlds in which slaves act for their lost masters (enableSlaveActingMaster): two broker groups, most with a slave."""

from __future__ import annotations

from collections import Counter
from typing import Any

from tests.simulation.observer import Observer
from tests.simulation.scenario import Scenario
from tests.simulation.world import World

ACTED = "slave acted"


class ActingScenario(Scenario):
    """Made from a world, like its base. What comes due at an acting slave goes to the other group's master.

    Every broker flushes before it answers, so that no power cut takes what a slave has sent away. A message may come twice.
    """

    group_counts = (2,)
    slave_chance = 0.85
    name_server_options = {
        "support_acting_master": True,
        "notify_min_broker_id_changed": True,
        "scan_not_active_broker_interval": 1_000,
    }

    def __init__(self, world: World) -> None:
        self._acting: set[str] = set()
        super().__init__(world)

    def _group_settings(self, number: int) -> dict[str, Any]:
        source = self.random
        allowed = {"ha_allowed_slaves": f"10.0.{number + 1}.2"} if source.random() < 0.5 else {}
        return {
            "enable_slave_acting_master": True,
            "enable_remote_escape": source.random() < 0.8,
            "broker_not_active_timeout_millis": source.choice((3_000, 10_000)),
            "flush_disk_type": "SYNC_FLUSH",
            **allowed,
        }

    def _observer(self, members: Counter[str], *, sends_are_repeated: bool) -> Observer:
        observer = super()._observer(members, sends_are_repeated=True)
        observer.links_fail()  # a reader that turns to a slave with a shorter log commits an older offset
        return observer

    def _look(self) -> None:
        """Count the times that a slave acts, beside the faults."""
        super()._look()
        acting = {one.name for one in self.brokers if one.is_running and one.service.controller.acts_as_master}
        self.faults[ACTED] += len(acting - self._acting)
        self._acting = acting
