"""Starts and stops everything of a broker that serves pops."""

from __future__ import annotations

from twisted_mq.broker.pop.acknowledge import Acknowledgements
from twisted_mq.broker.pop.in_flight import InFlightMessages
from twisted_mq.broker.pop.order_info import ConsumerOrderInfoTable
from twisted_mq.broker.pop.order_manager import ConsumerOrderManager
from twisted_mq.broker.pop.parts import PopParts
from twisted_mq.broker.pop.reader import PopReader
from twisted_mq.broker.pop.revive_log import ReviveLog
from twisted_mq.broker.pop.revive_queue import ReviveQueue
from twisted_mq.broker.pop.reviver import Reviver
from twisted_mq.broker.schedule.delivery_loop import DeliveryLoop
from twisted_mq.broker.waiting_requests import WaitingKind


class PopService:
    """Serves pops. It revives messages between `start` and `stop` if the broker is a master; the rest works once created."""

    def __init__(self, broker: PopParts, orders: ConsumerOrderInfoTable) -> None:
        self._broker = broker
        self.revive_log = ReviveLog(broker)
        self.in_flight = InFlightMessages(broker.wall_ms())
        self.orders = ConsumerOrderManager(broker, orders, self.queue_freed)
        self.reader = PopReader(broker, self.revive_log, self.in_flight, self.orders)
        self.acknowledgements = Acknowledgements(
            broker.offsets, broker.statistics, self.revive_log, self.in_flight, self.orders
        )
        self.revive_queues: list[ReviveQueue] = []
        self._loop: DeliveryLoop | None = None

    def start(self) -> None:
        """Revive messages from now on, starting at the group's offsets."""
        if self._broker.is_slave:
            return
        count = self._broker.options.revive_queue_num
        self.revive_queues = [self._revive_queue(queue_id) for queue_id in range(count)]
        turns = [queue.turn for queue in self.revive_queues]
        self._loop = DeliveryLoop(self._broker.clock, turns, self._broker.dispatch)
        self._loop.start()

    def _revive_queue(self, queue_id: int) -> ReviveQueue:
        reviver = Reviver(self._broker, self.revive_log, self.in_flight, queue_id)
        return ReviveQueue(self._broker, self.revive_log.topic, queue_id, reviver)

    def stop(self) -> None:
        """Stop reviving, and answer the requests that wait. A second call does nothing."""
        if self._loop is not None:
            self._loop.stop()
        self._broker.polling.answer_all(WaitingKind.POP, WaitingKind.NOTIFICATION)
        self.orders.stop()

    def queue_freed(self, topic: str, group: str, queue_id: int) -> None:
        """Wake the waiting pops of a queue that an ordered group can pop again."""
        store, offsets = self._broker.store, self._broker.offsets
        if store.max_offset_in_queue(topic, queue_id) > (offsets.query(group, topic, queue_id) or 0):
            self._broker.polling.wake(topic, group, queue_id)
            self._broker.dispatch()

    def forget_topic(self, topic: str) -> None:
        """Forget a deleted topic."""
        self.in_flight.forget_topic(topic)
        self.orders.forget_unused()

    def forget_group(self, group: str) -> None:
        """Forget a deleted group."""
        self.in_flight.forget_group(group)
        self.orders.forget_unused()
