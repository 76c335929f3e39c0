"""Takes part in the ordered queues of a broker's group, from its first ordered topic on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from twisted.internet import defer

from twisted_mq.broker.broker_parts import BrokerParts
from twisted_mq.broker.runtime import BrokerRuntime
from twisted_mq.protocol.bodies import TopicConfig

if TYPE_CHECKING:
    from twisted_mq.broker.ordering.agent import OrderAgent


class OrderMembership:
    """The membership of one broker. Its `agent` is None until the first ordered topic; its modules are loaded then."""

    def __init__(self, runtime: BrokerRuntime) -> None:
        self.agent: OrderAgent | None = None
        self._runtime = runtime

    def look(self, parts: BrokerParts, changed: list[TopicConfig] | None) -> None:
        """Start the agent if one of the changed topics is ordered; None means all topics.

        A slave starts the agent at once: it learns of topics a minute late, and its group could take no sends before.
        """
        options, machine = self._runtime.options, self._runtime.machine
        if self.agent is not None or options.order_coordinator is None:
            return
        configs = parts.controller.topics.topics.values() if changed is None else changed
        if options.is_slave or any(config.attributes and config.order_mode is not None for config in configs):
            from twisted_mq.broker.ordering.agent import OrderAgent
            from twisted_mq.broker.ordering.coordinator import coordinator_of

            coordinator = (machine.coordinator or coordinator_of)(options, self._runtime.reactor)
            register = parts.registration.register
            self.agent = OrderAgent(parts.controller, coordinator, parts.client.invoke, register, machine.monotonic)
            self.agent.start()

    def lacks_topic(self) -> bool:
        """Return whether the coordinator has an ordered topic of this group that this broker does not know."""
        return self.agent is not None and self.agent.lacks_topic()

    def leave(self) -> defer.Deferred[None]:
        """Stop the agent before all else: another group takes over the ordered sends while both brokers of this one run."""
        return defer.succeed(None) if self.agent is None else self.agent.stop()
