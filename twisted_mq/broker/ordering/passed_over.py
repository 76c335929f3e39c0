"""Reports messages of ordered queues that a consumer group skips without having consumed them here.

They may have been consumed at the brokers of another broker group. Or they were never acknowledged, and came again in a
later epoch. Or the consumer group has lost them. Each case is logged as a warning with queue, epoch and count, and is a row
that `mq order audit` shows.
"""

from __future__ import annotations

from collections.abc import Callable

from twisted_mq.broker.ordering.terms import Terms
from twisted_mq.logs import Logger
from twisted_mq.storage.tables.passed_over_table import MOST_ROWS, PassedOverTable, PassOver

MOST_EPOCHS = 100
"""The limit of epochs of one stretch that have a row of their own; the last row counts the rest."""


class PassedOverMessages:
    """The messages that consumer groups of one broker skipped."""

    log = Logger()

    def __init__(self, table: PassedOverTable, terms: Terms, now_ms: Callable[[], int]) -> None:
        self._table = table
        self._terms = terms
        self._now_ms = now_ms
        self._told: dict[tuple[str, str, int], int] = {}

    def tell(self, group: str, topic: str, queue_id: int, begin: int, end: int, reason: str) -> None:
        """Report that a group continues at `end` and consumed nothing from `begin` on. Nothing is reported twice."""
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
                "messages skipped: topic={t} queue={q} group={g} epoch={e} firstOffset={o} count={n} reason={r}",
                t=topic, q=queue_id, g=group, e=row.epoch, o=row.first_offset, n=row.count, r=reason,
            )  # fmt: skip
        if rows:
            self._table.passed_over = [*self._table.passed_over, *rows][-MOST_ROWS:]
            self._write()

    def _write(self) -> None:
        """Write the table. A failure is only logged: the warnings say the same, and the next row writes the table again."""
        try:
            self._table.save()
        except OSError as error:
            self.log.error("skipped messages are not recorded on disk, mq order audit does not show them: {e}", e=error)
