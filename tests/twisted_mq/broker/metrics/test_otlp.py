"""Figures that servers push: what a collector gets that speaks the real protocol, and what is said where none answers."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent import futures
from typing import Any

import grpc
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsPartialSuccess,
    ExportMetricsServiceRequest,
    ExportMetricsServiceResponse,
)
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from twisted.internet import defer, reactor, task
from twisted.logger import capturedLogs, formatEvent
from twisted.trial.unittest import TestCase

from tests.twisted_mq.broker.metrics.test_page import SEND, PageCase
from twisted_mq.config.errors import ConfigError
from twisted_mq.config.metrics_options import MetricsExporterType, MetricsOptions
from twisted_mq.metrics.otlp import EXPORT, Pusher, Span, export_request, headers_of
from twisted_mq.namesrv.options import NamesrvOptions
from twisted_mq.namesrv.service import make_namesrv
from twisted_mq.protocol.codes import RequestCode
from twisted_mq.reactor_threads import at_once

PATIENCE_SECONDS = 30


class Collector(grpc.GenericRpcHandler):
    """A collector in a thread of this process; `requests` with their headers, and what it answers."""

    def __init__(self, answer: ExportMetricsServiceResponse | None = None) -> None:
        self.requests: list[tuple[ExportMetricsServiceRequest, dict[str, str]]] = []
        self._answer = answer or ExportMetricsServiceResponse()
        self._server = grpc.server(futures.ThreadPoolExecutor(1))
        self._server.add_generic_rpc_handlers((self,))
        self.port = self._server.add_insecure_port("127.0.0.1:0")
        self._server.start()

    def service(self, details: Any) -> Any:
        if details.method != EXPORT:
            return None
        return grpc.unary_unary_rpc_method_handler(
            self._export, ExportMetricsServiceRequest.FromString, ExportMetricsServiceResponse.SerializeToString
        )

    def _export(self, request: ExportMetricsServiceRequest, context: Any) -> ExportMetricsServiceResponse:
        self.requests.append((request, dict(context.invocation_metadata())))
        return self._answer

    def stop(self) -> None:
        self._server.stop(None).wait()


def options(port: int, **more: Any) -> dict[str, Any]:
    return {
        "metrics_exporter_type": MetricsExporterType.OTLP_GRPC,
        "metrics_grpc_exporter_target": f"127.0.0.1:{port}",
        "metric_grpc_exporter_interval_in_mills": 100,
        **more,
    }


async def until(holds: Callable[[], object]) -> None:
    """Let the reactor go on until that is so."""
    end = time.monotonic() + PATIENCE_SECONDS
    while not holds():
        if time.monotonic() > end:
            raise AssertionError("it never came")
        await task.deferLater(reactor, 0.02)


def metrics_of(request: ExportMetricsServiceRequest) -> dict[str, Any]:
    return {one.name: one for one in request.resource_metrics[0].scope_metrics[0].metrics}


class PushedFiguresTest(PageCase):
    def setUp(self) -> None:
        super().setUp()
        self.collector = Collector()
        self.addCleanup(self.collector.stop)

    async def test_a_broker_pushes_what_its_page_would_show(self) -> None:
        await self.start(**options(self.collector.port, metrics_grpc_exporter_header="token:planted,zone:north"))
        await self.ask(RequestCode.SEND_MESSAGE_V2, SEND, b"one")
        requests = self.collector.requests
        await until(lambda: requests and "rocketmq_message_size" in metrics_of(requests[-1][0]))
        request, headers = requests[-1]
        self.assertEqual((headers["token"], headers["zone"]), ("planted", "north"))
        resource = {one.key: one.value.string_value for one in request.resource_metrics[0].resource.attributes}
        self.assertEqual(resource, {"service.name": "rocketmq-broker", "service.instance.id": "b"})
        found = metrics_of(request)
        (point,) = found["rocketmq_messages_in_total"].sum.data_points
        labels = {one.key: one.value.string_value for one in point.attributes}
        self.assertEqual((labels["topic"], labels["node_id"], point.as_double), ("T", "b", 1.0))
        units = {name: found[name].unit for name in ("rocketmq_storage_size", "rocketmq_storage_flush_behind_bytes")}
        self.assertEqual(set(units.values()), {"bytes"})
        (sizes,) = found["rocketmq_message_size"].histogram.data_points
        self.assertEqual((sizes.count, list(sizes.bucket_counts)), (1, [1, 0, 0, 0, 0, 0, 0]))
        self.assertGreater(found["rocketmq_topic_number"].gauge.data_points[0].as_double, 1)

    async def test_a_name_server_pushes_its_own(self) -> None:
        server = make_namesrv(
            NamesrvOptions(bind_address="127.0.0.1", listen_port=0, **options(self.collector.port)), reactor
        )
        server.startService()
        self.addCleanup(server.stopService)
        await until(lambda: self.collector.requests)
        self.assertIn("mq_namesrv_brokers", metrics_of(self.collector.requests[0][0]))

    async def test_a_target_is_needed(self) -> None:
        with self.assertRaisesRegex(ConfigError, "metricsGrpcExporterTarget=: must be host:port of a collector"):
            await self.start(metrics_exporter_type=MetricsExporterType.OTLP_GRPC)


class PusherTest(TestCase):
    timeout = 60

    def pusher(self, port: int) -> Pusher:
        pusher = Pusher(
            MetricsOptions(**options(port, metric_grpc_exporter_time_out_in_mills=500)),
            lambda: defer.succeed([GaugeMetricFamily("one", "", 1)]), {}, at_once, lambda: 5,
        )  # fmt: skip
        self.addCleanup(pusher.close)
        return pusher

    async def test_a_collector_that_does_not_answer_is_named_once(self) -> None:
        collector = Collector()
        collector.stop()
        pusher = self.pusher(collector.port)
        with capturedLogs() as said:
            await pusher.push()
            await pusher.push()
        lines = [formatEvent(one) for one in said]
        self.assertEqual(len(lines), 1)
        self.assertRegex(lines[0], f"metrics not pushed, retrying: target=127.0.0.1:{collector.port} ")

    async def test_what_a_collector_refuses_is_said_in_its_words(self) -> None:
        refusal = ExportMetricsPartialSuccess(rejected_data_points=3, error_message="too many")
        collector = Collector(ExportMetricsServiceResponse(partial_success=refusal))
        self.addCleanup(collector.stop)
        with capturedLogs() as said:
            await self.pusher(collector.port).push()
        self.assertIn("3 metrics refused: too many", formatEvent(said[0]))


def test_each_kind_of_figure_has_its_form() -> None:
    histogram = HistogramMetricFamily("h", "", labels=["a"])
    histogram.add_metric(["x"], [("1.0", 2), ("5.0", 2), ("+Inf", 3)], 9.5)
    counter = CounterMetricFamily("c_total", "", labels=["a"])
    counter.add_metric(["x"], 7)
    data = export_request([histogram, counter, GaugeMetricFamily("none", "", labels=["a"])], {}, Span(1, 2))
    found = metrics_of(ExportMetricsServiceRequest.FromString(data))
    assert list(found) == ["h", "c_total"]
    (point,) = found["h"].histogram.data_points
    assert (list(point.explicit_bounds), list(point.bucket_counts)) == ([1.0, 5.0], [2, 0, 1])
    assert (point.count, point.sum, point.start_time_unix_nano, point.time_unix_nano) == (3, 9.5, 1, 2)
    total = found["c_total"].sum
    assert (total.is_monotonic, total.aggregation_temporality, total.data_points[0].as_double) == (True, 2, 7.0)


def test_headers_are_pairs_and_never_told() -> None:
    assert headers_of("Token: a:b ,zone:north") == [("token", "a:b"), ("zone", "north")]
    try:
        headers_of("planted")
    except ConfigError as error:
        assert "planted" not in str(error)
    else:
        raise AssertionError("taken")
