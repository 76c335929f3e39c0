"""Reads the charts' values of the past from Prometheus, which keeps them longer than the console and over its restarts.

The metrics are those of Apache's exporter, which each broker of this project serves at /metrics. A series belongs to the broker
at its label brokerIP.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from urllib.parse import urlencode

import attrs
import msgspec
from twisted.internet import defer

from twisted_mq.admin.figures import BrokerFigures
from twisted_mq.console.history import EVERY_SECONDS, MOST_BROKERS, MOST_SHOWN, Sample, Values
from twisted_mq.protocol.errors import RocketMQError

QUERIES: Mapping[str, str] = {
    "in_rate": "rocketmq_brokeruntime_put_tps10",
    "out_rate": "rocketmq_brokeruntime_gettransfered_tps10",
    "disk_ratio": "rocketmq_brokeruntime_commitlog_disk_ratio",
}
"""The metric of each value."""
MOST_BYTES = 16 * 1024 * 1024
"""The longest answer that is read: some 256 brokers with 480 samples each take 5 MiB."""
ASK_SECONDS = 10.0

Get = Callable[[str], "defer.Deferred[bytes]"]


class PrometheusError(RocketMQError):
    """Prometheus did not answer, or not with samples."""


class _Series(msgspec.Struct):
    metric: dict[str, str] = {}
    values: list[tuple[float, str]] = []


class _Result(msgspec.Struct):
    result: list[_Series] = []


class _Answer(msgspec.Struct):
    status: str
    data: _Result = msgspec.field(default_factory=_Result)
    error: str = ""


@attrs.frozen
class PrometheusHistory:
    """The samples at `url`, the address of a Prometheus server without a path. `get` reads a page."""

    url: str
    get: Get

    async def since(self, time_ms: int, now_ms: int, brokers: Sequence[BrokerFigures]) -> list[Sample]:
        """Return the samples of these brokers, the oldest first. Raises PrometheusError."""
        step = max(EVERY_SECONDS, (now_ms - time_ms) / 1000 / MOST_SHOWN)
        known = {one.address: one for one in brokers[:MOST_BROKERS]}
        found: dict[float, dict[str, dict[str, float]]] = {}
        for value, metric in QUERIES.items():
            span = {"query": metric, "start": time_ms / 1000, "end": now_ms / 1000, "step": round(step, 3)}
            for series in await self._ask(f"{self.url}/api/v1/query_range?{urlencode(span)}"):
                address = series.metric.get("brokerIP", "")
                if address in known:
                    _collect(found, series, address, value)
        return [
            Sample(round(at * 1000), tuple(_values(known[address], row) for address, row in sorted(rows.items())))
            for at, rows in sorted(found.items())
        ]

    async def _ask(self, url: str) -> list[_Series]:
        try:
            answer = msgspec.json.decode(await self._page(url), type=_Answer)
        except msgspec.DecodeError as error:
            raise PrometheusError(f"{self.url}: this is not an answer of Prometheus: {error}") from error
        if answer.status != "success":
            raise PrometheusError(f"{self.url}: {answer.error or answer.status}")
        return answer.data.result

    async def _page(self, url: str) -> bytes:
        try:
            return await self.get(url)
        except defer.CancelledError:
            raise
        except Exception as error:  # an HTTP client raises errors that have no common base class
            raise PrometheusError(f"{self.url} does not answer: {error or type(error).__name__}") from error


def _collect(found: dict[float, dict[str, dict[str, float]]], series: _Series, address: str, value: str) -> None:
    for at, text in series.values:
        try:
            number = float(text)
        except ValueError as error:
            raise PrometheusError(f"a sample of {QUERIES[value]} is not a number: {text!r}") from error
        if number == number and number >= 0:  # Prometheus writes NaN, and brokers -1, for what is not known
            found.setdefault(at, {}).setdefault(address, {})[value] = number


def _values(one: BrokerFigures, row: Mapping[str, float]) -> Values:
    return Values(one.cluster, one.name, one.broker_id, row.get("in_rate"), row.get("out_rate"), row.get("disk_ratio"))
