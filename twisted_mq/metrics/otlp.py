"""Pushes metrics to an OpenTelemetry collector by gRPC (metricsExporterType=OTLP_GRPC); loaded only with that setting.

The metrics that Prometheus would read become one ExportMetricsServiceRequest: gauges, monotonic cumulative sums,
histograms. A collector that does not answer is logged once, and tried again at the next turn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import attrs
import grpc
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
    ExportMetricsServiceResponse,
)
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, InstrumentationScope, KeyValue
from opentelemetry.proto.metrics.v1 import metrics_pb2 as otlp
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from prometheus_client.core import Metric
from prometheus_client.samples import Sample
from twisted.internet import defer
from twisted.python import failure

from twisted_mq.config.errors import ConfigError
from twisted_mq.config.metrics_options import MetricsOptions
from twisted_mq.logs import Logger
from twisted_mq.reactor_threads import InThread

EXPORT = "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export"
SCOPE = "broker-meter"
"""Apache: OPEN_TELEMETRY_METER_NAME."""
_CUMULATIVE = otlp.AGGREGATION_TEMPORALITY_CUMULATIVE


@attrs.frozen
class Span:
    """The period of the sums: from the server's start to now, in ns since 1970."""

    start: int
    now: int


def export_request(metrics: Iterable[Metric], service: Mapping[str, str], span: Span) -> bytes:
    """Return all metrics as one request; `service` identifies their server."""
    made = [one for metric in metrics for one in _metrics(metric, span)]
    scope = otlp.ScopeMetrics(scope=InstrumentationScope(name=SCOPE), metrics=made)
    resource = otlp.ResourceMetrics(resource=Resource(attributes=_attributes(service)), scope_metrics=[scope])
    request: bytes = ExportMetricsServiceRequest(resource_metrics=[resource]).SerializeToString()
    return request


def _metrics(metric: Metric, span: Span) -> Iterable[otlp.Metric]:
    if not metric.samples:
        return ()
    if metric.type == "histogram":
        points = [_histogram(samples, span) for samples in _by_labels(metric).values()]
        histogram = otlp.Histogram(data_points=points, aggregation_temporality=_CUMULATIVE)
        return (otlp.Metric(name=metric.name, description=metric.documentation, unit=metric.unit, histogram=histogram),)
    name, values = metric.samples[0].name, [_point(sample, span) for sample in metric.samples]
    if metric.type == "counter":
        total = otlp.Sum(data_points=values, aggregation_temporality=_CUMULATIVE, is_monotonic=True)
        return (otlp.Metric(name=name, description=metric.documentation, unit=metric.unit, sum=total),)
    gauge = otlp.Gauge(data_points=values)
    return (otlp.Metric(name=name, description=metric.documentation, unit=metric.unit, gauge=gauge),)


def _attributes(labels: Mapping[str, str]) -> list[KeyValue]:
    return [KeyValue(key=name, value=AnyValue(string_value=value)) for name, value in labels.items()]


def _point(sample: Sample, span: Span) -> otlp.NumberDataPoint:
    return otlp.NumberDataPoint(
        attributes=_attributes(sample.labels),
        start_time_unix_nano=span.start,
        time_unix_nano=span.now,
        as_double=sample.value,
    )


def _by_labels(metric: Metric) -> dict[tuple[tuple[str, str], ...], list[Sample]]:
    found: dict[tuple[tuple[str, str], ...], list[Sample]] = {}
    for sample in metric.samples:
        key = tuple(pair for pair in sample.labels.items() if pair[0] != "le")
        found.setdefault(key, []).append(sample)
    return found


def _histogram(samples: list[Sample], span: Span) -> otlp.HistogramDataPoint:
    """Convert a histogram: Prometheus counts values up to a limit, OTLP those between two limits."""
    limits = [(sample.labels["le"], int(sample.value)) for sample in samples if "le" in sample.labels]
    counts = [count for _, count in limits]
    labels = {name: value for name, value in samples[0].labels.items() if name != "le"}
    return otlp.HistogramDataPoint(
        attributes=_attributes(labels),
        start_time_unix_nano=span.start,
        time_unix_nano=span.now,
        count=counts[-1],
        sum=next((sample.value for sample in samples if sample.name.endswith("_sum")), 0.0),
        explicit_bounds=[float(limit) for limit, _ in limits[:-1]],
        bucket_counts=[count - before for before, count in zip([0, *counts], counts, strict=False)],
    )


def headers_of(text: str) -> list[tuple[str, str]]:
    """Return the headers of metricsGrpcExporterHeader ("name:value,name:value"). Raises ConfigError, without a value in it."""
    headers = []
    for pair in filter(None, text.split(",")):
        name, colon, value = pair.partition(":")
        if not colon or not name.strip():
            raise ConfigError("must be name:value,name:value", key="metricsGrpcExporterHeader", value="...")
        headers.append((name.strip().lower(), value.strip()))
    return headers


class Pusher:
    """Sends to one collector. `collect` fires with the metrics; the call is made in a thread."""

    log = Logger()

    def __init__(
        self,
        options: MetricsOptions,
        collect: Callable[[], defer.Deferred[list[Metric]]],
        service: Mapping[str, str],
        in_thread: InThread,
        now_ms: Callable[[], int],
    ) -> None:
        """Create a pusher. Raises ConfigError."""
        target = options.metrics_grpc_exporter_target.strip()
        if not target:
            raise ConfigError("must be host:port of a collector", key="metricsGrpcExporterTarget", value="")
        self._target = target.partition("://")[2] or target
        secure = target.startswith("https://")
        self._headers = headers_of(options.metrics_grpc_exporter_header)
        self._seconds = options.metric_grpc_exporter_time_out_in_mills / 1000
        self._collect, self._service = collect, service
        self._in_thread, self._now_ms = in_thread, now_ms
        self._start = now_ms() * 1_000_000
        self._failed = False
        self._channel = (
            grpc.secure_channel(self._target, grpc.ssl_channel_credentials())
            if secure
            else grpc.insecure_channel(self._target)
        )
        self._export = self._channel.unary_unary(
            EXPORT, request_serializer=bytes, response_deserializer=ExportMetricsServiceResponse.FromString
        )

    def push(self) -> defer.Deferred[None]:
        """Collect and send once; never fails."""
        pushed = defer.maybeDeferred(self._collect).addCallback(lambda made: self._in_thread(self._send, made))
        return pushed.addCallbacks(self._sent, self._not_sent)

    def _send(self, metrics: list[Metric]) -> str:
        """Send, in a thread. Returns the collector's reason for what it refused. Raises grpc.RpcError."""
        request = export_request(metrics, self._service, Span(self._start, self._now_ms() * 1_000_000))
        answer = self._export(request, timeout=self._seconds, metadata=self._headers)
        refused = answer.partial_success
        return (
            f"{refused.rejected_data_points} metrics refused: {refused.error_message}" if refused.error_message else ""
        )

    def _sent(self, refused: str) -> None:
        if refused:
            self._tell(refused)
        elif self._failed:
            self._failed = False
            self.log.info("collector is back: target={target}", target=self._target)

    def _not_sent(self, reason: failure.Failure) -> None:
        error = reason.value
        self._tell(f"{error.code().name}: {error.details()}" if isinstance(error, grpc.Call) else str(error))

    def _tell(self, why: str) -> None:
        if not self._failed:
            self._failed = True
            self.log.warn("metrics not pushed, retrying: target={target} {why}", target=self._target, why=why)

    def close(self) -> None:
        """Close the connection."""
        self._channel.close()
