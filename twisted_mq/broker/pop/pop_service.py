"""Everything of a broker that serves pops, started and stopped with it."""

from __future__ import annotations

from typing import Any

from twisted_mq.broker.pop.held_requests import HeldRequests
from twisted_mq.broker.pop.in_flight import InFlightMessages
from twisted_mq.broker.pop.order_manager import ConsumerOrderManager
from twisted_mq.broker.pop.reader import PopReader
from twisted_mq.broker.pop.revive_log import ReviveLog
from twisted_mq.broker.pop.revive_queue import ReviveQueue
from twisted_mq.broker.schedule.delivery_loop import DeliveryLoop


class PopService:
    """Revives from `start` to `stop`, where the broker is a master; the rest works as soon as it is made."""

    def __init__(self, broker: Any) -> None:
        self._broker = broker
        self.revive_log = ReviveLog(broker)
        self.in_flight = InFlightMessages(broker.now_ms())
        self.orders = ConsumerOrderManager(broker, broker.tables.orders, self.queue_freed)
        self.reader = PopReader(broker)
        self.held_pops = HeldRequests(broker)
        self.held_notifications = HeldRequests(broker, newest_first=True)
        self._loop: DeliveryLoop | None = None

    def start(self) -> None:
        """Revive from now on, from where the group's offsets say."""
        if self._broker.is_slave:
            return
        topic, queues = self.revive_log.topic, range(self._broker.options.revive_queue_num)
        turns = [ReviveQueue(self._broker, topic, queue_id).turn for queue_id in queues]
        self._loop = DeliveryLoop(self._broker.clock, turns, self._broker.dispatch)
        self._loop.start()

    def stop(self) -> None:
        """Revive nothing more, and answer who waits. A second call does nothing."""
        if self._loop is not None:
            self._loop.stop()
        self.held_pops.answer_all()
        self.held_notifications.answer_all()
        self.orders.stop()

    def forget_lost(self) -> None:
        """Hold no requests of connections that are gone."""
        self.held_pops.forget_lost()
        self.held_notifications.forget_lost()

    def message_arriving(self, topic: str, queue_id: int, tags_code: int) -> None:
        """A message became visible."""
        self.held_pops.arrived(topic, queue_id, tags_code)
        self.held_notifications.arrived(topic, queue_id, tags_code)

    def answer_woken(self) -> bool:
        """Answer who waited for what arrived; True where check points may have been put."""
        self.held_notifications.answer_woken()
        return self.held_pops.answer_woken()

    def queue_freed(self, topic: str, group: str, queue_id: int) -> None:
        """An ordered group may pop a queue again."""
        store, offsets = self._broker.store, self._broker.offsets
        if store.max_offset_in_queue(topic, queue_id) > (offsets.query(group, topic, queue_id) or 0):
            self.held_pops.wake(topic, group, queue_id)
            self.held_notifications.wake(topic, group, queue_id)
            self._broker.dispatch()

    def forget_topic(self, topic: str) -> None:
        """A topic was deleted."""
        self.in_flight.forget_topic(topic)
        self.orders.forget_unused()

    def forget_group(self, group: str) -> None:
        """A group was deleted."""
        self.in_flight.forget_group(group)
        self.orders.forget_unused()
