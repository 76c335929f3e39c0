"""Publishes a name server's metrics; Apache's name server has none."""

from __future__ import annotations

from collections.abc import Callable

import attrs
from prometheus_client.core import Metric
from twisted.internet import defer

from twisted_mq.metrics import process
from twisted_mq.metrics.family import Family, collected, common_labels, one, text_of
from twisted_mq.metrics.page import MetricsSite
from twisted_mq.namesrv.state import NamesrvState
from twisted_mq.remoting.server import RemotingServerFactory
from twisted_mq.turns import Work


@attrs.frozen
class NamesrvScrape:
    """The values for one answer."""

    state: NamesrvState
    server: RemotingServerFactory


def _gauge(name: str, help: str, value: Callable[[NamesrvScrape], float]) -> Family[NamesrvScrape]:
    return Family(name, "gauge", help, (), lambda scrape: one(value(scrape)))


FAMILIES: tuple[Family[NamesrvScrape], ...] = (
    _gauge("mq_namesrv_topics", "Topics with a route", lambda s: len(s.state.routes.queues.by_topic)),
    _gauge("mq_namesrv_broker_names", "Names of brokers", lambda s: len(s.state.routes.brokers)),
    _gauge("mq_namesrv_brokers", "Live brokers", lambda s: len(s.state.routes.live)),
)


def metrics_site(state: NamesrvState, server: RemotingServerFactory) -> MetricsSite:
    """Return the site of one name server. Raises ConfigError if metricsLabel is wrong."""
    common = _common(state)

    def text() -> defer.Deferred[bytes]:
        return text_of(state.turns, state.in_thread, _figures(NamesrvScrape(state, server), common))

    return MetricsSite(text, list, list, state.clock)


def figures_of(state: NamesrvState, server: RemotingServerFactory) -> Callable[[], defer.Deferred[list[Metric]]]:
    """Return a function that collects all metrics at each call. Raises ConfigError if metricsLabel is wrong."""
    common = _common(state)

    def collect() -> defer.Deferred[list[Metric]]:
        found = state.turns.run("figures", _figures(NamesrvScrape(state, server), common))
        return found if isinstance(found, defer.Deferred) else defer.succeed(found)

    return collect


def _common(state: NamesrvState) -> dict[str, str]:
    options = state.options
    node = f"{options.bind_address}:{options.listen_port}"
    return common_labels(options.metrics_label, node_type="namesrv", node_id=node)


def _figures(scrape: NamesrvScrape, common: dict[str, str]) -> Work[list[Metric]]:
    metrics = yield from collected(scrape, (*FAMILIES, *process.FAMILIES), common)
    return [*metrics, *process.of_process()]
