"""Declares metrics by tables: each row has a name, its labels, and the source of its value."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Generic, Protocol, TypeAlias, TypeVar

import attrs
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.exposition import generate_latest
from prometheus_client.registry import Collector
from twisted.internet import defer

from twisted_mq.config.errors import ConfigError
from twisted_mq.reactor_threads import InThread
from twisted_mq.turns import Turns, Work

Measured = TypeVar("Measured", contravariant=True)


class Spread(Protocol):
    """The value of a histogram."""

    total: float

    def buckets(self) -> Iterable[tuple[str, float]]:
        """Return the limits as text, +Inf last, with the number of values up to each."""


Row: TypeAlias = tuple[tuple[str, ...], float | Spread]
"""The values of the labels, and the metric's value."""

ROWS_A_SLICE = 500
_KINDS = {"gauge": GaugeMetricFamily, "counter": CounterMetricFamily, "histogram": HistogramMetricFamily}


@attrs.frozen
class Family(Generic[Measured]):
    """A metric: a gauge, a counter whose name ends in _total, or a histogram. Unknown values have no row.

    On the page the unit follows the name, as in 5.3.3: rocketmq_storage_size is rocketmq_storage_size_bytes.
    """

    name: str
    kind: str
    help: str
    labels: tuple[str, ...]
    rows: Callable[[Measured], Iterable[Row]]
    unit: str = ""

    @property
    def shown_name(self) -> str:
        """Return the name with its unit."""
        return self.name if not self.unit or self.name.endswith(f"_{self.unit}") else f"{self.name}_{self.unit}"


def one(value: float) -> list[Row]:
    """Return the only row of a metric without labels of its own."""
    return [((), value)]


def collected(
    measured: Measured, families: Iterable[Family[Measured]], common: Mapping[str, str], *, units_in_names: bool = True
) -> Work[list[Metric]]:
    """Collect all metrics with the common labels, some rows in each slice."""
    metrics: list[Metric] = []
    seen = 0
    for family in families:
        name = family.shown_name if units_in_names else family.name
        metric = _KINDS[family.kind](name, family.help, labels=(*common, *family.labels))
        metric.unit = family.unit
        metrics.append(metric)
        for labels, value in family.rows(measured):
            _add(metric, (*common.values(), *labels), value)
            seen += 1
            if seen % ROWS_A_SLICE == 0:
                yield None
    return metrics


def _add(metric: Metric, labels: tuple[str, ...], value: float | Spread) -> None:
    if isinstance(metric, HistogramMetricFamily):
        metric.add_metric(labels, list(value.buckets()), value.total)  # type: ignore[union-attr]  # as its kind says
    else:
        metric.add_metric(labels, value)  # type: ignore[attr-defined]  # gauges and counters have it


def page_text(metrics: Iterable[Metric]) -> bytes:
    """Return Prometheus' text format 0.0.4; families without a row are left out."""
    return generate_latest(_Collected([metric for metric in metrics if metric.samples]))


@attrs.frozen
class _Collected(Collector):
    metrics: list[Metric]

    def collect(self) -> Iterable[Metric]:
        return self.metrics


def common_labels(pairs: str, **own: str) -> dict[str, str]:
    """Return the labels of metricsLabel ("name:value,name:value") and the server's own. Raises ConfigError, which names
    the pair.
    """
    labels = {}
    for pair in filter(None, pairs.split(",")):
        name, colon, value = pair.partition(":")
        if not colon or not name.strip().isidentifier():
            raise ConfigError(f"{pair!r} is not name:value", key="metricsLabel", value=pairs)
        labels[name.strip()] = value.strip()
    return labels | own


def text_of(turns: Turns, in_thread: InThread, work: Work[list[Metric]]) -> defer.Deferred[bytes]:
    """Return the page of the metrics that such work collects."""
    found = turns.run("figures", work)
    if isinstance(found, defer.Deferred):
        return found.addCallback(lambda metrics: in_thread(page_text, metrics))
    return in_thread(page_text, found)
