"""Makes the metrics that only this broker has, in addition to those of every server here: budgets, each slave."""

from __future__ import annotations

from collections.abc import Iterator

from twisted_mq.broker.metrics.lag import flag
from twisted_mq.broker.metrics.scrape import Scrape
from twisted_mq.metrics.family import Family, Row, one
from twisted_mq.version import installed_version


def _held(scrape: Scrape) -> Iterator[Row]:
    budget = scrape.server.traffic.budget
    yield ("unsent",), budget.unsent_bytes
    yield ("incomplete",), budget.incomplete_bytes
    yield ("held",), budget.held_bytes


def _limits(scrape: Scrape) -> Iterator[Row]:
    options = scrape.server.traffic.budget.options
    yield ("unsent",), options.max_unsent_bytes
    yield ("incomplete",), options.max_incomplete_bytes
    yield ("held",), options.max_held_bytes


def _slave_behind(scrape: Scrape) -> Iterator[Row]:
    for slave in scrape.broker.ha.runtime_info().ha_connection_info:
        yield (slave.addr or "", flag(slave.in_sync)), slave.diff


def _deleted(scrape: Scrape) -> Iterator[Row]:
    for (topic, queue_id), count in sorted(scrape.broker.store.deleted_unconsumed().items()):
        yield (topic, str(queue_id)), count


FAMILIES: tuple[Family[Scrape], ...] = (
    Family("mq_build_info", "gauge", "1, with the version", ("version",), lambda s: [((installed_version(),), 1)]),
    Family("mq_budget_bytes", "gauge", "Memory used by peers", ("kind",), _held),
    Family("mq_budget_limit_bytes", "gauge", "Memory limit for peers", ("kind",), _limits),
    Family("mq_ha_slave_behind_bytes", "gauge", "Bytes that a slave has not acknowledged", ("slave", "in_sync"), _slave_behind),
    Family("mq_put_failed_total", "counter", "Messages that were not stored", (),
           lambda s: one(s.broker.statistics.put_failed)),
    Family("mq_sends_together_total", "counter", "Sends that were processed in a batch", (),
           lambda s: one(s.broker.statistics.sends_together)),
    Family("mq_commits_together_total", "counter", "Transactions that were committed in a batch", (),
           lambda s: one(s.broker.statistics.commits_together)),
    Family("mq_sends_left_total", "counter", "Sends that ended a batch", ("reason",),
           lambda s: [((reason,), count) for reason, count in sorted(s.broker.statistics.sends_left.items())]),
    Family("mq_ordered_deleted_unconsumed_total", "counter", "Messages of ordered queues that a full disk deleted before they"
           " were consumed", ("topic", "queue"), _deleted),
)  # fmt: skip
