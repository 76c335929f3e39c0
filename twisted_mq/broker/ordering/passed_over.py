"""Tells of messages of ordered queues that a consumer group goes on behind without having consumed them here.

They may have been consumed at another group's brokers, or never acknowledged, and then they came again in a later epoch;
or they are lost to the group. Each time is a warning with queue, epoch and count, and a row that `mq order audit` shows.
"""

from __future__ import annotations

from collections.abc import Callable

from twisted_mq.broker.ordering.terms import Terms
from twisted_mq.logs import Logger
from twisted_mq.storage.tables.passed_over_table import MOST_ROWS, PassedOverTable, PassOver

MOST_EPOCHS = 100
"""Of one stretch that are told each for itself; the last row counts the rest."""


class PassedOver:
    """What one broker's groups passed over."""

    log = Logger()

    def __init__(self, table: PassedOverTable, terms: Terms, now_ms: Callable[[], int]) -> None:
        self._table = table
        self._terms = terms
        self._now_ms = now_ms
        self._told: dict[tuple[str, str, int], int] = {}

    def tell(self, group: str, topic: str, queue_id: int, begin: int, end: int, reason: str) -> None:
        """The group goes on at `end`, and consumed nothing from `begin` on. What was told once is not told again."""
        key = group, topic, queue_id
        begin = max(begin, self._told.get(key, 0))
        if begin >= end:
            return
        self._told[key] = end
        rows = [
            PassOver(topic, queue_id, group, epoch, first, count, reason, self._now_ms())
            for epoch, first, count in self._terms.stretches(topic, queue_id, begin, end, MOST_EPOCHS)
        ]
        for row in rows:
            self.log.warn(
                "messages passed over: topic={t} queue={q} group={g} epoch={e} firstOffset={o} count={n} reason={r}",
                t=topic, q=queue_id, g=group, e=row.epoch, o=row.first_offset, n=row.count, r=reason,
            )  # fmt: skip
        if rows:
            self._table.passed_over = [*self._table.passed_over, *rows][-MOST_ROWS:]
            self._write()

    def _write(self) -> None:
        """Nothing waits for it: the warnings say the same, and the next row has it written again."""
        try:
            self._table.save()
        except OSError as error:
            self.log.error("messages passed over are not on disk, mq order audit lacks them: {e}", e=error)
