"""Defines settings of metrics and of the log (Apache: BrokerConfig). Name servers here have them too."""

from __future__ import annotations

import enum

import attrs

from twisted_mq.config.limits import PORT
from twisted_mq.config.options import option
from twisted_mq.config.tls_options import TlsOptions


class MetricsExporterType(enum.StrEnum):
    """The ways to publish metrics (Apache: MetricsExporterType, which has LOG too)."""

    DISABLE = "DISABLE"
    PROM = "PROM"
    OTLP_GRPC = "OTLP_GRPC"


class LogFormat(enum.StrEnum):
    """The formats of log lines."""

    TEXT = "text"
    JSON = "json"


@attrs.define(kw_only=True)
class MetricsOptions(TlsOptions):
    """Settings of a server's metrics and of its log."""

    # the log

    log_format: LogFormat = option(  # noqa: RUF009 an attrs field, not a shared default
        LogFormat.TEXT, "json: one object per line; ours", type=LogFormat
    )

    # metrics

    metrics_exporter_type: MetricsExporterType = option(  # noqa: RUF009 an attrs field, not a shared default
        MetricsExporterType.DISABLE,
        "PROM: metrics for Prometheus at /metrics, and /health and /ready; OTLP_GRPC: push to an OpenTelemetry collector",
        type=MetricsExporterType,
    )
    metrics_prom_exporter_host: str = option(
        "",
        "listen address of the metrics page; empty: brokerIP1, for a name server bindAddress",
    )
    metrics_prom_exporter_port: int = option(5557, "port of the metrics page; 0: a free port", limits=PORT)
    metrics_grpc_exporter_target: str = option(
        "",
        "collector to push metrics to, host:port; https://host:port uses TLS",
    )
    metrics_grpc_exporter_header: str = option("", "headers for the collector, as name:value,name:value", secret=True)
    metric_grpc_exporter_time_out_in_mills: int = option(3000, "ms to wait for the collector", type="long", low=1)
    metric_grpc_exporter_interval_in_mills: int = option(60000, "ms between pushes", type="long", low=100)
    metrics_label: str = option("", "labels of every metric, as name:value,name:value")

    @property
    def shows_metrics(self) -> bool:
        """True if there is a page of metrics."""
        return self.metrics_exporter_type is MetricsExporterType.PROM

    @property
    def pushes_metrics(self) -> bool:
        """True if metrics are sent to a collector."""
        return self.metrics_exporter_type is MetricsExporterType.OTLP_GRPC

    @property
    def collects_figures(self) -> bool:
        """True if metrics are published at all, so that sizes and times are recorded."""
        return self.metrics_exporter_type is not MetricsExporterType.DISABLE
