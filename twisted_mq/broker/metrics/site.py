"""Serves the page of a broker's metrics, and whether the broker is healthy and ready for work."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from prometheus_client.core import Metric
from twisted.internet import defer

from twisted_mq.broker.metrics import builtin, exporter, own, pops, timer
from twisted_mq.broker.metrics.scrape import Scrape
from twisted_mq.metrics import process
from twisted_mq.metrics.family import Family, collected, common_labels, text_of
from twisted_mq.metrics.page import MetricsSite
from twisted_mq.protocol.layouts.ha import ConnectionState
from twisted_mq.storage.appending.gate import Gate
from twisted_mq.storage.interfaces import Shut
from twisted_mq.turns import Work

if TYPE_CHECKING:
    from twisted_mq.broker.controller import BrokerController
    from twisted_mq.broker.options import BrokerOptions
    from twisted_mq.broker.registration import Registration
    from twisted_mq.proxy.port import GrpcPort
    from twisted_mq.remoting.server import RemotingServerFactory


def common_of(options: BrokerOptions) -> dict[str, str]:
    """Return the labels that every metric of 5.3.3's exporter has. Raises ConfigError if metricsLabel is wrong."""
    own_labels = {
        "cluster": options.broker_cluster_name,
        "node_type": "broker",
        "node_id": options.broker_name,
    }
    return common_labels(options.metrics_label, **own_labels)


GrpcNow = Callable[[], "GrpcPort | None"]
"""Returns the broker's gRPC port; None if it has none, or not yet."""


def figures_of(
    broker: BrokerController, server: RemotingServerFactory, grpc: GrpcNow
) -> Callable[[], defer.Deferred[list[Metric]]]:
    """Return a function that collects all metrics of a broker at each call. Raises ConfigError."""
    common = common_of(broker.options)

    def collect() -> defer.Deferred[list[Metric]]:
        found = broker.turns.run("figures", _figures(Scrape(broker, server), grpc(), common, units_in_names=False))
        return found if isinstance(found, defer.Deferred) else defer.succeed(found)

    return collect


def metrics_site(
    broker: BrokerController,
    server: RemotingServerFactory,
    registration: Registration,
    gate: Gate,
    grpc: GrpcNow,
) -> MetricsSite:
    """Return the site of one broker, whose store has this gate. Raises ConfigError if metricsLabel is wrong."""
    common = common_of(broker.options)

    def text() -> defer.Deferred[bytes]:
        return text_of(
            broker.turns, broker.in_thread, _figures(Scrape(broker, server), grpc(), common, units_in_names=True)
        )

    def unhealthy() -> list[str]:
        return [Shut.DISK_FAILED.value] if gate.why is Shut.DISK_FAILED else []

    def not_ready() -> list[str]:
        why = gate.why_not_now
        wrong = [why.value] if why is not None and why is not Shut.SLAVE else []
        if not registration.is_known:
            servers = ", ".join(registration.name_servers) or "namesrvAddr is empty"
            wrong.append(f"no name server knows this broker: {servers}")
        client = broker.ha.client
        if broker.is_slave and (client is None or client.state is not ConnectionState.TRANSFER):
            wrong.append("no master sends this slave its log")
        return wrong

    return MetricsSite(text, unhealthy, not_ready, broker.clock)


def _figures(
    scrape: Scrape, grpc: GrpcPort | None, common: dict[str, str], *, units_in_names: bool
) -> Work[list[Metric]]:
    yield from scrape.prepare()
    families: tuple[Family[Scrape], ...] = (
        *builtin.FAMILIES,
        *timer.FAMILIES,
        *pops.FAMILIES,
        *own.FAMILIES,
        *process.FAMILIES,
    )
    metrics = yield from collected(scrape, families, common, units_in_names=units_in_names)
    metrics += yield from collected(scrape, exporter.FAMILIES, {})
    if grpc is not None:
        from twisted_mq.proxy.metrics import FAMILIES, labels_of

        options = scrape.broker.options
        labels = labels_of(options.broker_cluster_name, options.broker_name, "local", options.metrics_label)
        metrics += yield from collected(grpc, FAMILIES, labels, units_in_names=units_in_names)
    return [*metrics, *process.of_process()]
