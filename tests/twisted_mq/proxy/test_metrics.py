"""Metrics of the gRPC port: on the broker's page, and on the page of a proxy."""

from __future__ import annotations

import urllib.request
from collections.abc import Iterator

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.support.grpc_client import GrpcClient, code
from tests.support.proxied_server import MODES, ProxiedServer
from twisted_mq.config.metrics_options import MetricsExporterType
from twisted_mq.testing import EmbeddedServer

PAGE = {"metrics_exporter_type": MetricsExporterType.PROM, "metrics_prom_exporter_port": 0}


@pytest.fixture(params=list(MODES))
def shown(request: pytest.FixtureRequest) -> Iterator[EmbeddedServer]:
    is_local = request.param == "local"
    with MODES[request.param](store="memory", broker_options=PAGE if is_local else {}) as server:
        if isinstance(server, ProxiedServer):
            server.proxy_options = {**PAGE, "proxy_name": "p", "metrics_label": "zone:north"}
        yield server


def metrics(server: EmbeddedServer) -> dict[tuple[str, ...], float]:
    """Return the port's metrics by name and values of their own labels, which are sorted by name."""
    if isinstance(server, ProxiedServer):
        port, common = server.proxy.metrics_port, {"node_id": "p", "proxy_mode": "cluster", "zone": "north"}
    else:
        port, common = server._cluster.broker.metrics_port, {"node_id": "broker-a", "proxy_mode": "local"}
    common |= {"cluster": "DefaultCluster", "node_type": "proxy"}
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as page:
        families = list(text_string_to_metric_families(page.read().decode()))
    found = {}
    for sample in (one for family in families for one in family.samples):
        if sample.name.startswith(("mq_grpc_", "rocketmq_proxy_")):
            labels = dict(sample.labels)
            assert {name: labels.pop(name) for name in common} == common
            found[sample.name, *(labels[name] for name in sorted(labels))] = sample.value
    return found


def test_calls_clients_and_renewed_messages_are_shown(shown: EmbeddedServer) -> None:
    topic = shown.new_topic("measured")
    with GrpcClient(shown.grpc) as client:
        client.settle_consumer(topic, "measured", client_type="PUSH_CONSUMER")
        assert [code(client.send(topic, body)) for body in (b"x", b"")] == ["OK", "MESSAGE_BODY_EMPTY"]
        assert len(client.receive(topic, "measured", auto_renew=True)) == 1
        found = metrics(shown)
    expected = {
        ("rocketmq_proxy_up",): 1,
        ("mq_grpc_connections",): 1,
        ("mq_grpc_clients", "PUSH_CONSUMER", "PYTHON"): 1,
        ("mq_grpc_open_calls",): 1,
        ("mq_grpc_calls_total", "OK", "SendMessage"): 1,
        ("mq_grpc_calls_total", "MESSAGE_BODY_EMPTY", "SendMessage"): 1,
        ("mq_grpc_calls_total", "OK", "ReceiveMessage"): 1,
        ("mq_grpc_ended_total", "OK"): 3,
        ("mq_grpc_renewed_messages",): 1,
        ("mq_grpc_budget_bytes", "unsent"): 0,
        ("mq_grpc_budget_bytes", "incomplete"): 0,
    }
    assert {name: found.get(name) for name in expected} == expected
