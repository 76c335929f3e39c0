"""A broker's page of figures: lags that are true, nothing where nothing is known, and what its state pages say."""

from __future__ import annotations

import json
from typing import Any

from prometheus_client.parser import text_string_to_metric_families
from twisted.internet import defer, protocol, reactor
from twisted.internet.endpoints import TCP4ClientEndpoint, connectProtocol
from twisted.internet.task import deferLater
from twisted.python import failure
from twisted.trial.unittest import TestCase
from twisted.web.client import Agent, readBody

from twisted_mq.broker.metrics.timer import BOUNDS_SECONDS
from twisted_mq.broker.options import BrokerOptions
from twisted_mq.broker.service import make_broker
from twisted_mq.config.errors import ConfigError
from twisted_mq.config.metrics_options import MetricsExporterType
from twisted_mq.namesrv.options import NamesrvOptions
from twisted_mq.namesrv.service import make_namesrv
from twisted_mq.protocol.codes import RequestCode
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.remoting.client import RemotingClient
from twisted_mq.remoting.listen import PortError
from twisted_mq.storage.interfaces import Shut
from twisted_mq.web_bounds import MOST_CONNECTIONS

SEND = {"a": "P", "b": "T", "c": "TBW102", "d": "4", "e": "0", "f": "0", "g": "1", "h": "0",
        "i": "", "j": "0", "k": "false", "m": "false"}  # fmt: skip
PULL = {"consumerGroup": "G", "topic": "T", "queueId": "0", "queueOffset": "0", "maxMsgNums": "2", "sysFlag": "4",
        "commitOffset": "0", "suspendTimeoutMillis": "0", "subscription": "*", "subVersion": "0"}  # fmt: skip
COMMIT = {"consumerGroup": "G", "topic": "T", "queueId": "0", "commitOffset": "1"}
Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


def samples(text: str) -> Samples:
    """By name and labels."""
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


class PageCase(TestCase):
    timeout = 60

    def setUp(self) -> None:
        self.client = RemotingClient(reactor)
        self.addCleanup(self.client.close)

    async def start(self, **more: Any) -> None:
        options: dict[str, Any] = {
            "broker_name": "b", "bind_address": "127.0.0.1", "broker_ip1": "127.0.0.1", "listen_port": 0,
            "namesrv_addr": "", "store_path_root_dir": self.mktemp(), "mapped_file_size_commit_log": 1 << 20,
            "metrics_exporter_type": MetricsExporterType.PROM, "metrics_prom_exporter_port": 0,
        }  # fmt: skip
        self.broker = make_broker(BrokerOptions(**{**options, **more}), reactor)
        self.broker.startService()
        self.addCleanup(self.broker.stopService)
        await self.broker.started

    async def get(self, path: str) -> tuple[int, str]:
        url = f"http://127.0.0.1:{self.broker.metrics_port}{path}".encode()
        response = await Agent(reactor).request(b"GET", url)
        return response.code, (await readBody(response)).decode()

    async def wrong(self, path: str) -> tuple[int, list[str]]:
        code, text = await self.get(path)
        return code, json.loads(text)["wrong"]

    async def ask(self, code: int, fields: dict[str, str], body: bytes = b"") -> None:
        command = RemotingCommand.request(code, fields, body)
        self.assertEqual((await self.client.invoke(f"127.0.0.1:{self.broker.port}", command)).code, 0)


class Dribbler(protocol.Protocol):
    """Begins a request, and never ends it."""

    lost = False

    def connectionMade(self) -> None:
        assert self.transport is not None
        self.transport.write(b"GET /metrics HTTP/1.1\r\nX-A: ")

    def connectionLost(self, reason: failure.Failure = protocol.connectionDone) -> None:
        self.lost = True


class StrangersTest(PageCase):
    async def test_probes_are_answered_while_one_address_holds_every_place(self) -> None:
        await self.start()
        endpoint = TCP4ClientEndpoint(reactor, "127.0.0.1", self.broker.metrics_port, 5, ("127.0.0.2", 0))
        strangers = [Dribbler() for _ in range(MOST_CONNECTIONS + 1)]
        for one in strangers:
            await connectProtocol(endpoint, one)
            self.addCleanup(one.transport.abortConnection)  # type: ignore[union-attr]
        while not strangers[0].lost:
            await deferLater(reactor, 0.01)
        self.assertEqual([one.lost for one in strangers[1:]], [False] * MOST_CONNECTIONS, "its own oldest gave way")
        for _ in range(3):
            self.assertEqual((await self.get("/health"))[0], 200)
        self.assertGreaterEqual(sum(one.lost for one in strangers), 2)
        self.assertGreaterEqual(sum(not one.lost for one in strangers), MOST_CONNECTIONS - 3)


class FiguresTest(PageCase):
    async def test_figures_of_sends_reads_and_lag_have_apaches_labels(self) -> None:
        await self.start(metrics_label="zone:north")
        for body in (b"one", b"two", b"three"):
            await self.ask(RequestCode.SEND_MESSAGE_V2, SEND, body)
        await self.ask(RequestCode.PULL_MESSAGE, PULL)
        await self.ask(RequestCode.UPDATE_CONSUMER_OFFSET, COMMIT)
        code, text = await self.get("/metrics")
        self.assertEqual(code, 200)
        found = samples(text)
        common = {"zone": "north", "cluster": "DefaultCluster", "node_type": "broker", "node_id": "b"}
        lag = {**common, "consumer_group": "G", "topic": "T", "is_retry": "false", "is_system": "false"}
        reads = {**common, "topic": "T", "consumer_group": "G", "is_system": "false"}
        expected: list[tuple[str, dict[str, str], float]] = [
            ("rocketmq_consumer_lag_messages", lag, 2),
            ("rocketmq_consumer_ready_messages", lag, 1),
            ("rocketmq_consumer_inflight_messages", lag, 1),
            ("rocketmq_messages_in_total", {**common, "topic": "T", "message_type": "NORMAL", "is_system": "false"}, 3),
            ("rocketmq_messages_out_total", reads, 2),
            ("rocketmq_group_diff", {"group": "G", "topic": "T", "countOfOnlineConsumers": "0", "msgModel": "0"}, 2),
            ("rocketmq_producer_offset", {"cluster": "DefaultCluster", "broker": "b", "topic": "T"}, 3),
            ("mq_connections", common, 1),
        ]
        told = {name: found[name, frozenset(labels.items())] for name, labels, _ in expected}
        self.assertEqual(told, {name: value for name, _, value in expected})
        self.assertGreaterEqual(found["rocketmq_consumer_lag_latency_milliseconds", frozenset(lag.items())], 0)

    async def test_sizes_and_times_are_histograms_with_apaches_limits(self) -> None:
        await self.start()
        for size in (10, 2000):
            await self.ask(RequestCode.SEND_MESSAGE_V2, SEND, b"x" * size)
        await self.ask(RequestCode.PULL_MESSAGE, PULL)
        _, text = await self.get("/metrics")
        found = samples(text)
        common = {"cluster": "DefaultCluster", "node_type": "broker", "node_id": "b"}
        sizes = {**common, "topic": "T", "message_type": "NORMAL", "is_system": "false"}
        limits = ("1024.0", "4096.0", "524288.0", "1048576.0", "2097152.0", "4194304.0", "+Inf")
        bucket = "rocketmq_message_size_bucket"
        counts = [found[bucket, frozenset({**sizes, "le": limit}.items())] for limit in limits]
        self.assertEqual(counts, [1, 2, 2, 2, 2, 2, 2])
        times = {
            (labels["request_code"], labels["response_code"], labels["is_long_polling"], labels["result"]): value
            for (name, pairs), value in found.items()
            if name == "rocketmq_rpc_latency_milliseconds_count" and (labels := dict(pairs))
        }
        self.assertEqual(times["send_message_v2", "success", "false", "success"], 2)
        self.assertEqual(times["pull_message", "success", "false", "success"], 1)

    async def test_ends_of_transactions_are_shown_by_topic(self) -> None:
        await self.start()
        statistics = self.broker.controller.statistics
        statistics.rolled_back["T"] += 3
        for seconds in (1, 61):
            statistics.committed["T"].record(seconds)
        _, text = await self.get("/metrics")
        labels = {"cluster": "DefaultCluster", "node_type": "broker", "node_id": "b", "topic": "T"}
        found = {
            (name, dict(pairs).get("le")): value
            for (name, pairs), value in samples(text).items()
            if labels.items() <= dict(pairs).items()
            and name.startswith(("rocketmq_commit", "rocketmq_roll", "rocketmq_fin"))
        }
        bucket = "rocketmq_finish_message_latency_milliseconds_bucket"
        limits = ("5.0", "60.0", "600.0", "3600.0", "43200.0", "86400.0", "+Inf")
        self.assertEqual([found.pop((bucket, limit)) for limit in limits], [1, 1, 2, 2, 2, 2, 2])
        self.assertEqual(
            found,
            {
                ("rocketmq_commit_messages_total", None): 2,
                ("rocketmq_rollback_messages_total", None): 3,
                ("rocketmq_finish_message_latency_milliseconds_count", None): 2,
                ("rocketmq_finish_message_latency_milliseconds_sum", None): 62,
            },
        )

    async def test_the_timer_is_shown_by_topic_and_by_when_messages_are_due(self) -> None:
        await self.start()
        broker = self.broker.controller
        later = {**SEND, "g": str(broker.now_ms()), "i": "TIMER_DELAY_SEC\x013000\x02"}
        await self.ask(RequestCode.SEND_MESSAGE_V2, later, b"later")
        broker.waiting.timer.turn()
        _, text = await self.get("/metrics")
        disk = {"storage_type": "local", "storage_medium": "disk"}
        common = {"cluster": "DefaultCluster", "node_type": "broker", "node_id": "b", **disk}
        found = {
            (name.removeprefix("rocketmq_"), frozenset(dict(pairs).items() - common.items())): value
            for (name, pairs), value in samples(text).items()
            if name.startswith(("rocketmq_tim", "rocketmq_delay"))
        }
        topic = ("topic", "T")
        bounds = {
            bound: found["timer_message_snapshot", frozenset({("timer_bound_s", str(bound))})]
            for bound in BOUNDS_SECONDS
        }
        self.assertEqual(bounds, {bound: float(bound == 3600) for bound in BOUNDS_SECONDS})
        told = {
            name: found[name, frozenset()]
            for name in ("timer_enqueue_lag", "timer_enqueue_latency_milliseconds", "timer_dequeue_lag")
        }
        self.assertEqual(
            told, {"timer_enqueue_lag": 0, "timer_enqueue_latency_milliseconds": 0, "timer_dequeue_lag": 1}
        )
        by_topic = {
            name: found[name, frozenset({topic})]
            for name in ("timing_messages", "timer_enqueue_total", "delay_message_latency_seconds_count")
        }
        self.assertEqual(set(by_topic.values()), {1})
        limits = ("60.0", "600.0", "3600.0", "43200.0", "86400.0", "259200.0", "+Inf")
        buckets = [found["delay_message_latency_seconds_bucket", frozenset({topic, ("le", limit)})] for limit in limits]
        self.assertEqual(buckets, [0, 0, 1, 1, 1, 1, 1])
        self.assertNotIn(("timer_dequeue_total", frozenset({topic})), found)

    async def test_a_slave_s_timer_is_not_shown_as_late(self) -> None:
        await self.start(broker_role="SLAVE", broker_id=1)
        _, text = await self.get("/metrics")
        self.assertEqual([name for name, _ in samples(text) if name.startswith("rocketmq_timer")], [])

    async def test_times_of_creations_have_apaches_limits(self) -> None:
        await self.start()
        await self.ask(RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, {}, b'{"groupName":"G"}')
        _, text = await self.get("/metrics")
        limits = [
            dict(pairs)["le"]
            for (name, pairs), _ in samples(text).items()
            if name == "rocketmq_consumer_group_create_execution_time_milliseconds_bucket"
            and dict(pairs)["invocation_status"] == "success"
        ]
        self.assertEqual(limits, ["10.0", "100.0", "1000.0", "3000.0", "5000.0", "+Inf"])

    async def test_retried_and_dead_messages_are_counted_apart(self) -> None:
        await self.start()
        for topic in ("T", "%RETRY%G", "%DLQ%G"):
            await self.ask(RequestCode.SEND_MESSAGE_V2, {**SEND, "b": topic}, b"one")
        _, text = await self.get("/metrics")
        found = {
            (name.removeprefix("rocketmq_"), *(value for key, value in sorted(pairs) if key in ("topic", "group")))
            for name, pairs in samples(text)
            if name.endswith("_offset") and name.startswith(("rocketmq_producer", "rocketmq_topic"))
        }
        self.assertEqual(
            found, {("producer_offset", "T"), ("topic_retry_offset", "%RETRY%G"), ("topic_dlq_offset", "G")}
        )

    async def test_what_is_not_known_is_not_shown_as_nothing(self) -> None:
        await self.start()
        await self.ask(RequestCode.SEND_MESSAGE_V2, SEND, b"one")
        _, text = await self.get("/metrics")
        names = {name for name, _ in samples(text)}
        self.assertEqual(
            names & {"rocketmq_consumer_lag_messages", "rocketmq_group_diff", "rocketmq_consumer_tps"}, set()
        )
        self.assertIn("rocketmq_topic_number", names)

    async def test_scrapes_at_once_are_all_answered(self) -> None:
        await self.start()
        answers = await defer.gatherResults(defer.ensureDeferred(self.get("/metrics")) for _ in range(5))
        self.assertEqual([code for code, _ in answers], [200] * 5)

    async def test_a_label_without_a_value_is_named_at_the_start(self) -> None:
        with self.assertRaisesRegex(ConfigError, "metricsLabel=zone: 'zone' is not name:value"):
            await self.start(metrics_label="zone")

    async def test_a_port_in_use_is_named_with_its_key(self) -> None:
        await self.start()
        with self.assertRaisesRegex(PortError, "set another metricsPromExporterPort"):
            await self.start(metrics_prom_exporter_port=self.broker.metrics_port)


class StateTest(PageCase):
    def name_server(self, **more: Any) -> str:
        folder = self.mktemp()
        files = {"kv_config_path": f"{folder}/kvConfig.json", "config_store_path": f"{folder}/namesrv.properties"}
        options = NamesrvOptions(listen_port=0, bind_address="127.0.0.1", **files, **more)
        service = make_namesrv(options, reactor)
        service.startService()
        self.addCleanup(service.stopService)
        return f"127.0.0.1:{service.port}"

    async def test_a_broker_that_takes_messages_is_well_and_ready(self) -> None:
        await self.start(namesrv_addr=self.name_server())
        for path in ("/health", "/ready"):
            self.assertEqual(await self.get(path), (200, '{"ok": true, "wrong": []}\n'))
        self.assertEqual((await self.get("/other"))[0], 404)

    async def test_a_full_disk_makes_it_not_ready_and_a_failed_one_unhealthy(self) -> None:
        await self.start(namesrv_addr=self.name_server())
        gate = self.broker._parts.state.store.gate
        gate.shut(Shut.DISK_FULL)
        self.assertEqual(await self.wrong("/ready"), (503, ["the broker's disk is full"]))
        self.assertEqual(await self.wrong("/health"), (200, []))
        gate.open(Shut.DISK_FULL)
        gate.shut(Shut.DISK_FAILED)
        self.assertEqual(await self.wrong("/health"), (503, ["the disk lost or refused data"]))

    async def test_a_broker_without_a_name_server_is_not_ready(self) -> None:
        await self.start(namesrv_addr="")
        self.assertEqual(await self.wrong("/ready"), (503, ["no name server knows this broker: namesrvAddr is empty"]))

    async def test_a_broker_that_its_name_server_refuses_is_not_ready(self) -> None:
        address = self.name_server(registration_shared_secret="s")
        await self.start(namesrv_addr=address)
        self.assertEqual(await self.wrong("/ready"), (503, [f"no name server knows this broker: {address}"]))

    async def test_a_broker_that_no_name_server_knows_is_not_ready(self) -> None:
        await self.start(namesrv_addr="127.0.0.1:1")
        self.assertEqual(await self.wrong("/ready"), (503, ["no name server knows this broker: 127.0.0.1:1"]))

    async def test_a_slave_without_a_master_is_not_ready(self) -> None:
        await self.start(broker_role="SLAVE", broker_id=1, namesrv_addr=self.name_server())
        self.assertEqual(await self.wrong("/ready"), (503, ["no master sends this slave its log"]))
