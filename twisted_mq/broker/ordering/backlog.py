"""Finds the consumer groups that still have to consume a term, and where groups start when a broker joins the send list."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Protocol

from twisted_mq.broker.clients.consumer_offset_manager import ConsumerOffsetManager
from twisted_mq.broker.ordering.passed_over import PassedOverMessages
from twisted_mq.broker.ordering.terms import Terms
from twisted_mq.ordering.lists import Term
from twisted_mq.storage.interfaces import IMessageStore

NOT_CONSUMED = "consumed elsewhere, or never acknowledged"
"""The reason that a group goes on after the stored messages when its brokers come back into the send list."""


class BacklogParts(Protocol):
    """The parts of the broker that Backlog uses."""

    store: IMessageStore
    offsets: ConsumerOffsetManager

    def dispatch(self) -> bool: ...


class Backlog:
    """The backlog of one broker's queues."""

    def __init__(self, broker: BacklogParts, terms: Terms, passed_over: PassedOverMessages) -> None:
        self._broker = broker
        self._terms = terms
        self._passed_over = passed_over

    def is_consumed(self, topic: str, queues: Iterable[int], term: Term, groups: Collection[str]) -> bool:
        """Return True if each group committed the end of each queue with messages of the term; without groups, if no
        queue has any.
        """
        if self._broker.dispatch():
            return False
        return all(self._queue_is_consumed(topic, queue_id, term, groups) for queue_id in queues)

    def _queue_is_consumed(self, topic: str, queue_id: int, term: Term, groups: Collection[str]) -> bool:
        end = self._terms.end(topic, queue_id)
        if self._terms.begin(topic, queue_id, term.epoch) >= end:
            return True
        query = self._broker.offsets.query
        return bool(groups) and all((query(group, topic, queue_id) or 0) >= end for group in groups)

    def pass_over(self, topic: str, queues: Iterable[int], groups: Collection[str]) -> None:
        """Move the groups, and those that ever committed, past everything stored: it was consumed, or never acknowledged."""
        store, offsets = self._broker.store, self._broker.offsets
        self._broker.dispatch()
        ends = {queue_id: store.max_offset_in_queue(topic, queue_id) for queue_id in queues}
        for group in sorted({*groups, *offsets.groups_of(topic)}):
            for queue_id, end in ends.items():
                begin = offsets.query(group, topic, queue_id) or 0
                self._passed_over.tell(group, topic, queue_id, begin, end, NOT_CONSUMED)
                offsets.commit(group, topic, queue_id, end)
