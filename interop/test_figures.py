"""The page of a broker's figures beside Apache's after the same work: names, kinds, labels, limits, and what can be counted."""

from __future__ import annotations

import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from interop.peers.process import free_port, wait_until
from interop.peers.requirements import require_java
from interop.peers.servers import COMMANDS, Cluster, ask
from twisted_mq.blocking import Message, Producer, PushConsumer
from twisted_mq.protocol.codes import RequestCode

pytestmark = pytest.mark.peer

TOPIC, GROUP = "Orders", "audit"
TO_COME = ("rocketmq_messages_in_total", "rocketmq_consumer_lag_messages", "rocketmq_send_to_dlq_messages_total",
           "rocketmq_timer_enqueue_total", "rocketmq_rpc_latency_milliseconds_count")  # fmt: skip
ABSENT = ("rocketmq_rocksdb_", "rocketmq_pop_buffer_scan_time_consume")
"""Apache's alone: see tests/twisted_mq/broker/metrics/test_names.py."""


class Page:
    """Metrics page of one broker, after some work."""

    def __init__(self, cluster: Cluster, port: int) -> None:
        self._cluster = cluster
        self._url = f"http://127.0.0.1:{port}/metrics"
        self.samples: list[Sample] = []
        self._work()

    def _work(self) -> None:
        cluster = self._cluster
        create = {"topic": TOPIC, "defaultTopic": "TBW102", "readQueueNums": "1", "writeQueueNums": "1", "perm": "6",
                  "topicFilterType": "SINGLE_TAG", "topicSysFlag": "0", "order": "false"}  # fmt: skip
        ask(cluster.broker_port, RequestCode.UPDATE_AND_CREATE_TOPIC, create)
        ask(cluster.broker_port, RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, body=b'{"groupName":"audit"}')
        cluster.wait_route(TOPIC)
        with Producer(cluster.name_server, group="shop") as producer:
            for number in range(3):
                producer.send(Message(TOPIC, b"order %d" % number))
            later = Message(TOPIC, b"later")
            later.properties["TIMER_DELAY_SEC"] = "3000"
            producer.send(later)
        with PushConsumer(cluster.name_server, group=GROUP, topics={TOPIC: "*"}) as consumer:
            for number, message in enumerate(consumer.messages(timeout=30), 1):
                message.retry(delay_level=-1) if number == 1 else message.ack()
                if number == 3:
                    break
            wait_until(self._is_complete, lambda: f"{set(TO_COME) - self.labels().keys()} of {cluster.kind}")

    def _is_complete(self) -> bool:
        with urllib.request.urlopen(self._url, timeout=10) as answer:
            families = list(text_string_to_metric_families(answer.read().decode()))
        self.samples = [
            sample for family in families for sample in family.samples if sample.name.startswith("rocketmq_")
        ]
        time.sleep(0.2)
        return {one.name for one in self.samples} >= set(TO_COME)

    def labels(self) -> dict[str, set[frozenset[str]]]:
        """The labels that each name has; not those that name the library of a figure."""
        found: dict[str, set[frozenset[str]]] = {}
        for one in self.samples:
            names = frozenset(name for name in one.labels if not name.startswith("otel_"))
            found.setdefault(one.name, set()).add(names)
        return found

    def limits(self) -> dict[str, set[str]]:
        found: dict[str, set[str]] = {}
        for one in self.samples:
            if "le" in one.labels:
                found.setdefault(one.name, set()).add(one.labels["le"])
        return found

    def value(self, name: str, **labels: str) -> float:
        return sum(one.value for one in self.samples if one.name == name and labels.items() <= one.labels.items())


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Page]]:
    require_java()
    found = {}
    for kind in COMMANDS:
        port = free_port()
        shown: dict[str, object] = {"metricsExporterType": "PROM", "metricsPromExporterHost": "127.0.0.1"}
        cluster = Cluster(
            kind, Path(tmp_path_factory.mktemp(kind)), settings={**shown, "metricsPromExporterPort": port}
        )
        try:
            cluster.start()
            found[kind] = Page(cluster, port)
        finally:
            cluster.stop()
    yield found


def test_what_apaches_page_has_ours_has_with_the_same_labels(pages: dict[str, Page]) -> None:
    apache, ours = pages["apache"].labels(), pages["ours"].labels()
    assert {name for name in apache.keys() - ours.keys() if not name.startswith(ABSENT)} == set()
    assert {name: ours[name] for name in apache.keys() & ours.keys()} == {
        name: apache[name] for name in apache.keys() & ours.keys()
    }
    assert len(apache.keys() & ours.keys()) > 30


def test_histograms_have_the_same_limits(pages: dict[str, Page]) -> None:
    apache, ours = pages["apache"].limits(), pages["ours"].limits()
    assert {name: ours[name] for name in apache.keys() & ours.keys()} == {
        name: found for name, found in apache.items() if not name.startswith(ABSENT)
    }
    assert "rocketmq_delay_message_latency_seconds_bucket" in apache


@pytest.mark.parametrize("kind", COMMANDS)
def test_the_same_work_counts_alike(pages: dict[str, Page], kind: str) -> None:
    page = pages[kind]
    counted = {
        "in": page.value("rocketmq_messages_in_total", topic=TOPIC),
        "dead": page.value("rocketmq_send_to_dlq_messages_total", consumer_group=GROUP),
        "came to the timer": page.value("rocketmq_timer_enqueue_total", topic=TOPIC),
        "due within the hour": page.value("rocketmq_timer_message_snapshot", timer_bound_s="3600"),
        "asked to wait": page.value("rocketmq_delay_message_latency_seconds_bucket", topic=TOPIC, le="3600.0"),
        "groups made": page.value(
            "rocketmq_consumer_group_create_execution_time_milliseconds_count", invocation_status="success"
        ),
        "topics made": page.value(
            "rocketmq_topic_create_execution_time_milliseconds_count", invocation_status="success"
        ),
    }
    assert counted == dict.fromkeys(counted, 1) | {"in": 3}
