"""Settings of the page with figures (Apache: BrokerConfig). Here name servers have them too."""

from __future__ import annotations

import enum

import attrs

from twisted_mq.config.options import option
from twisted_mq.config.tls_options import TlsOptions


class MetricsExporterType(enum.StrEnum):
    """Where figures go (Apache: MetricsExporterType, which has OTLP_GRPC and LOG too)."""

    DISABLE = "DISABLE"
    PROM = "PROM"


@attrs.define(kw_only=True)
class MetricsOptions(TlsOptions):
    """Whether and where a server shows its figures."""

    # figures

    metrics_exporter_type: MetricsExporterType = option(  # noqa: RUF009 an attrs field, not a shared default
        "metricsExporterType",
        MetricsExporterType.DISABLE,
        "PROM: figures for Prometheus at /metrics, and /health and /ready",
        type=MetricsExporterType,
    )
    metrics_prom_exporter_host: str = option(
        "metricsPromExporterHost", "", "address of the page; empty: brokerIP1, of a name server bindAddress"
    )
    metrics_prom_exporter_port: int = option(
        "metricsPromExporterPort", 5557, "port of the page; 0: any free one", low=0, high=65535
    )
    metrics_label: str = option("metricsLabel", "", "labels of every figure, as name:value,name:value")

    @property
    def shows_metrics(self) -> bool:
        """Whether there is a page."""
        return self.metrics_exporter_type is MetricsExporterType.PROM

    @property
    def collects_figures(self) -> bool:
        """Whether anybody is shown figures, so that sizes and times are noted."""
        return self.metrics_exporter_type is not MetricsExporterType.DISABLE
