"""Metrics of a gRPC port: on the page of its broker (local mode), or on the proxy's own page (cluster mode).

Apache's proxy has rocketmq_proxy_up alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

from prometheus_client.core import Metric
from twisted.internet import defer

from twisted_mq.metrics import process
from twisted_mq.metrics.family import Family, Row, collected, common_labels, one, text_of
from twisted_mq.metrics.page import MetricsSite
from twisted_mq.proxy.grpc.status import GrpcStatus
from twisted_mq.reactor_threads import InThread
from twisted_mq.turns import Turns, Work

if TYPE_CHECKING:
    from twisted_mq.proxy.options import ProxyServiceOptions
    from twisted_mq.proxy.port import GrpcPort


def _calls(port: GrpcPort) -> Iterator[Row]:
    from twisted_mq.proxy.messages import Code

    for (method, code), count in sorted(port.messaging.counts.items()):
        yield (method, Code.Name(code)), count


def _ended(port: GrpcPort) -> Iterator[Row]:
    for status, count in sorted(port.shared.ended.items()):
        yield (GrpcStatus(status).name,), count


def _clients(port: GrpcPort) -> Iterator[Row]:
    from twisted_mq.proxy.messages import ClientType

    found = Counter((client.settings.client_type, client.language) for client in port.messaging.clients)
    names = dict(map(reversed, ClientType.items()))
    for (kind, language), count in sorted(found.items()):
        yield (names.get(kind, str(kind)), language), count


def _budget(port: GrpcPort) -> Iterator[Row]:
    budget = port.shared.budget
    yield ("unsent",), budget.unsent_bytes
    yield ("incomplete",), budget.incomplete_bytes


FAMILIES: tuple[Family[GrpcPort], ...] = (
    Family("rocketmq_proxy_up", "gauge", "1 while gRPC clients are served", (), lambda p: one(1)),
    Family("mq_grpc_connections", "gauge", "Open connections of gRPC clients", (),
           lambda p: one(len(p.factory.connections))),
    Family("mq_grpc_clients", "gauge", "Clients whose settings are known", ("client_type", "language"), _clients),
    Family("mq_grpc_open_calls", "gauge", "Calls that have not ended, with Telemetry streams", (),
           lambda p: one(p.shared.calls)),
    Family("mq_grpc_calls_total", "counter", "Answers, by their status", ("method", "code"), _calls),
    Family("mq_grpc_ended_total", "counter", "Ended calls, by their gRPC status", ("status",), _ended),
    Family("mq_grpc_renewed_messages", "gauge", "Messages that stay invisible while clients work on them", (),
           lambda p: one(len(p.messaging.receiving.renewal))),
    Family("mq_grpc_budget_bytes", "gauge", "Memory that gRPC clients use", ("kind",), _budget),
)  # fmt: skip


def labels_of(cluster: str, name: str, mode: str, pairs: str = "") -> dict[str, str]:
    """Return the labels of each metric of a proxy, as Apache's has them. Raises ConfigError if metricsLabel is wrong."""
    return common_labels(pairs, cluster=cluster, node_type="proxy", node_id=name, proxy_mode=mode)


def metrics_site(port: GrpcPort, options: ProxyServiceOptions, turns: Turns, in_thread: InThread) -> MetricsSite:
    """Return the site of a proxy in a process of its own. Raises ConfigError if metricsLabel is wrong."""
    common = labels_of(options.rocket_mq_cluster_name, options.proxy_name, "cluster", options.metrics_label)

    def work() -> Work[list[Metric]]:
        metrics = yield from collected(port, FAMILIES, common)
        return [*metrics, *process.of_process()]

    def text() -> defer.Deferred[bytes]:
        return text_of(turns, in_thread, work())

    return MetricsSite(text, list, list, port.clock)
