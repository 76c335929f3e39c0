"""Sends of Apache's Java client that arrive together are processed together: the quick way is really taken over sockets."""

from __future__ import annotations

import urllib.request
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from interop.peers.clients import Clients, JavaPeer
from interop.peers.process import free_port
from interop.peers.servers import Cluster, running

pytestmark = pytest.mark.peer

COUNT = 6000
LEAST_SHARE = 0.5
"""Sends in reads of fewer than four are processed one by one. How many these are depends on the load: under a load of 30
on two cores 0.84 were together. If one value differed from what the quick way expects, none would be.
"""


def figures(port: int) -> dict[str, float]:
    """The broker's own counts of sends, of those that were left by reason."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        families = text_string_to_metric_families(answer.read().decode())
        samples = [sample for family in families for sample in family.samples]
    return {
        sample.labels.get("reason", sample.name): sample.value
        for sample in samples
        if sample.name.startswith("mq_sends_")
    }


def test_most_sends_of_the_java_client_are_processed_together(java: JavaPeer, tmp_path: Path) -> None:
    port = free_port()
    shown = {"metricsExporterType": "PROM", "metricsPromExporterHost": "127.0.0.1", "metricsPromExporterPort": port}
    with running(Cluster("ours", tmp_path, settings=shown)) as servers:
        clients = Clients(java, servers.name_server)
        producer = clients.producer()
        messages = [{"topic": "Orders", "body": f"order {number}", "tags": "new"} for number in range(COUNT)]
        producer.command("send_async", messages=messages[:1])
        before = figures(port)
        results = producer.command("send_async", messages=messages)
        assert {result["status"] for result in results} == {"SEND_OK"}
        after = figures(port)
        clients.stop()
    taken = after["mq_sends_together_total"] - before.get("mq_sends_together_total", 0)
    assert taken >= LEAST_SHARE * COUNT, after
