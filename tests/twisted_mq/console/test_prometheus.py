"""The past of charts from Prometheus: what is asked, which series belong to which broker, and answers that are none."""

from __future__ import annotations

import json
import math
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from twisted.internet import defer

from twisted_mq.admin.figures import BrokerFigures
from twisted_mq.broker.metrics.exporter import OF_RUNTIME
from twisted_mq.console.history import EVERY_SECONDS, MOST_SHOWN, Sample, Values
from twisted_mq.console.prometheus import QUERIES, PrometheusError, PrometheusHistory

NOW_MS = 1_795_216_968_000
HOUR_MS = 3_600_000
MASTER = BrokerFigures("C", "broker-a", 0, "10.0.0.1:10911")
SLAVE = BrokerFigures("C", "broker-a", 1, "10.0.0.2:10911")


def series(address: str, *values: tuple[float, str]) -> dict[str, Any]:
    labels = dict(zip(OF_RUNTIME, ("C", address, "broker-a", "V5_3_3", "1", "479"), strict=True))
    return {"metric": {"__name__": "x", **labels}, "values": [list(value) for value in values]}


class Server:
    """Answers queries with the series of each metric."""

    def __init__(self, **of: list[dict[str, Any]]) -> None:
        self.of = {QUERIES[value]: found for value, found in of.items()}
        self.asked: list[dict[str, str]] = []
        self.page: bytes | None = None
        self.error: Exception | None = None

    def get(self, url: str) -> defer.Deferred[bytes]:
        parts = urlsplit(url)
        assert parts.path == "/prom/api/v1/query_range"
        asked = {name: values[0] for name, values in parse_qs(parts.query).items()}
        self.asked.append(asked)
        if self.error is not None:
            return defer.fail(self.error)
        result = {"resultType": "matrix", "result": self.of.get(asked["query"], [])}
        return defer.succeed(self.page or json.dumps({"status": "success", "data": result}).encode())

    def since(self, hours: int = 1, *brokers: BrokerFigures) -> list[Sample]:
        past = PrometheusHistory("http://prom:9090/prom", self.get)
        found: list[list[Sample]] = []
        waiting = defer.ensureDeferred(past.since(NOW_MS - hours * HOUR_MS, NOW_MS, brokers or (MASTER, SLAVE)))
        waiting.addCallback(found.append)
        if not found:
            waiting.addErrback(lambda reason: reason.raiseException())
            failures: list[Any] = []
            waiting.addErrback(failures.append)
            failures[0].raiseException()
        return found[0]


def test_series_of_three_metrics_become_samples_of_brokers() -> None:
    server = Server(
        in_rate=[series("10.0.0.1:10911", (100, "7.5"), (130, "8"))],
        out_rate=[series("10.0.0.1:10911", (130, "3")), series("10.0.0.2:10911", (130, "1"))],
        disk_ratio=[series("10.0.0.1:10911", (130, "0.25"))],
    )
    assert server.since() == [
        Sample(100_000, (Values("C", "broker-a", 0, 7.5, None, None),)),
        Sample(
            130_000,
            (Values("C", "broker-a", 0, 8.0, 3.0, 0.25), Values("C", "broker-a", 1, None, 1.0, None)),
        ),
    ]


def test_span_and_step_are_those_of_the_chart() -> None:
    server = Server()
    assert server.since(1) == []
    assert [one["query"] for one in server.asked] == list(QUERIES.values())
    hour = server.asked[0]
    assert (float(hour["start"]), float(hour["end"])) == ((NOW_MS - HOUR_MS) / 1000, NOW_MS / 1000)
    assert float(hour["step"]) == EVERY_SECONDS
    server.since(24)
    assert math.isclose(float(server.asked[-1]["step"]), 24 * 3600 / MOST_SHOWN)


def test_series_of_other_brokers_and_unknown_values_are_left_out() -> None:
    server = Server(
        in_rate=[
            series("10.9.9.9:10911", (100, "7")),
            series("10.0.0.2:10911", (100, "7")),
            {"metric": {}, "values": []},
        ],
        disk_ratio=[series("10.0.0.1:10911", (100, "NaN"), (130, "-1"))],
    )
    assert server.since(1, MASTER) == []


@pytest.mark.parametrize(
    ("page", "said"),
    [
        (b"<html>", "this is not an answer of Prometheus"),
        (b'{"status":"error","errorType":"bad_data","error":"parse error"}', "parse error"),
        (
            b'{"status":"success","data":{"result":[{"metric":{"brokerIP":"10.0.0.1:10911"},"values":[[1,"x"]]}]}}',
            "'x'",
        ),
        (b'{"status":"success","data":{"result":[{"values":[1]}]}}', "this is not an answer of Prometheus"),
    ],
)
def test_answer_that_is_none_is_an_error_and_no_empty_chart(page: bytes, said: str) -> None:
    server = Server()
    server.page = page
    with pytest.raises(PrometheusError, match=said):
        server.since()


def test_server_that_is_away_is_named() -> None:
    server = Server()
    server.error = OSError("refused")
    with pytest.raises(PrometheusError, match="http://prom:9090/prom does not answer: refused"):
        server.since()
