"""Random histories of a cluster made of the rules, found and shortened by Hypothesis: see `cluster_model`.

`make simulate-rules` runs 10^5 of them, MQ_HISTORIES says how many.
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from tests.twisted_mq.ordering.cluster_model import STEPS, ClusterModel

HISTORIES = int(os.environ.get("MQ_HISTORIES", "300"))
STEPS_OF_ONE = 60
FREQUENT = ("tell", "learn", "produce", "find_head", "deliver", "replicate", "answer", "find_term", "consume", "commit")
BROKER = st.integers(0, 5)
AMOUNT = st.integers(0, 3)


class Cluster(RuleBasedStateMachine):
    """Any step may follow any other."""

    model: ClusterModel

    @initialize(groups=st.integers(1, 3))
    def begin(self, groups: int) -> None:
        self.model = ClusterModel(groups)

    @rule(step=st.sampled_from(STEPS), which=BROKER, amount=AMOUNT)
    def step(self, step: str, which: int, amount: int) -> None:
        getattr(self.model, step)(which, amount)

    @rule(step=st.sampled_from(FREQUENT), which=BROKER, amount=AMOUNT)
    def work(self, step: str, which: int, amount: int) -> None:
        getattr(self.model, step)(which, amount)

    @rule()
    def a_while(self) -> None:
        """All that goes on by itself does so once."""
        self.model.settle()

    def teardown(self) -> None:
        if hasattr(self, "model"):
            self.model.heal()


TestCluster = Cluster.TestCase
TestCluster.settings = settings(
    max_examples=HISTORIES, stateful_step_count=STEPS_OF_ONE, suppress_health_check=list(HealthCheck), database=None
)
