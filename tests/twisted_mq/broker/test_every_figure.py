"""Every figure of disks, memory, sockets, rates and lag that brokerStatus, clusterList, doctor, console and metrics show,
beside the system's own: df, /proc, the store's files, and a load that is counted here.

`COMPARED` names what is compared; a figure that is neither there nor in `NOT_OF_THE_SYSTEM` fails a test.
"""

from __future__ import annotations

import os
import re
import resource
import shutil
import struct
import subprocess
import sys
import tempfile
import time
import unittest
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from prometheus_client.core import Metric
from prometheus_client.parser import text_string_to_metric_families
from twisted.internet import reactor
from twisted.internet.endpoints import TCP4ClientEndpoint, connectProtocol
from twisted.internet.task import deferLater
from twisted.web.client import Agent, readBody

from tests.twisted_mq.broker.test_broker_service import SEND, BrokerServiceCase, Raw
from twisted_mq.admin.calls import AdminCalls
from twisted_mq.admin.figures import BrokerFigures, replication
from twisted_mq.admin.groups import consume_stats
from twisted_mq.admin.lag import queue_lags
from twisted_mq.broker.metrics import builtin, exporter, own, pops, timer
from twisted_mq.broker.service import BrokerService
from twisted_mq.broker.statistics.broker_statistics import BrokerStatistics
from twisted_mq.cli.admin.cluster_list import base_row, more_row
from twisted_mq.cli.doctor import figures as doctor
from twisted_mq.cli.doctor.machine import check_store
from twisted_mq.config.metrics_options import MetricsExporterType
from twisted_mq.console.forms import percent
from twisted_mq.metrics import process
from twisted_mq.protocol.bodies import ConsumerData, HeartbeatData, KVTable, ProducerData, decode_body, encode_body
from twisted_mq.protocol.codes import RequestCode
from twisted_mq.protocol.messages.subscription import build_subscription
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.remoting.client import RemotingClient

OTHER_DISK = "/dev/shm"
GIB, MIB = 1 << 30, 1 << 20
ESTABLISHED = "01"
ENTRY, RECORD_HEAD, STORE_TIME_AT = struct.Struct(">8xi8x"), struct.Struct(">iI"), 56
MESSAGE_MAGIC = 0xDAA320A7
SECONDS = 70
"""Steps of the load, one for each second that its snapshots and samples are apart."""
COMMITTED, TIMED, WAITING, CONSUMERS = 20, 3, 4, 2
UNFINISHED = 1000
PULL = {"consumerGroup": "G", "topic": "T", "queueId": "0", "maxMsgNums": "4", "commitOffset": "0", "subVersion": "0",
        "suspendTimeoutMillis": "0", "sysFlag": "4", "subscription": "*"}  # fmt: skip

Shown = dict[str, Any]
"""A figure by the place that shows it and its name."""


# the system


def df(path: str) -> dict[str, int]:
    """Bytes of a path's disk, and its used percent, as df prints them."""
    words = ["df", "--block-size=1", "--output=size,used,avail,pcent", path]
    row = subprocess.run(words, check=True, capture_output=True, text=True).stdout.split()[-4:]
    return dict(zip(("total", "used", "available", "percent"), (int(one.rstrip("%")) for one in row), strict=True))


def entries(folder: Path) -> int:
    """Entries of a queue's files: those with a size."""
    data = b"".join(file.read_bytes() for file in sorted(folder.iterdir()))
    return sum(size > 0 for (size,) in ENTRY.iter_unpack(data))


def records(folder: Path) -> Iterator[bytes]:
    """Records of a log's only file, one after the other."""
    (file,) = folder.iterdir()
    data, place = file.read_bytes(), 0
    while place + RECORD_HEAD.size <= len(data):
        size, magic = RECORD_HEAD.unpack_from(data, place)
        if magic != MESSAGE_MAGIC:
            return
        yield data[place : place + size]
        place += size


def store_time_ms(record: bytes) -> int:
    return int(struct.unpack_from(">q", record, STORE_TIME_AT)[0])


def established(port: int) -> int:
    """Connections that the kernel has at a port of this machine."""
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return sum(row[1].endswith(f":{port:04X}") and row[3] == ESTABLISHED for row in rows)


def statm_bytes() -> tuple[int, int]:
    """Virtual and resident size of this process."""
    virtual, resident = map(int, Path("/proc/self/statm").read_text().split()[:2])
    return virtual * resource.getpagesize(), resident * resource.getpagesize()


def start_seconds() -> float:
    """When this process started, in seconds since 1970."""
    (booted,) = re.findall(r"^btime (\d+)$", Path("/proc/stat").read_text(), re.MULTILINE)
    ticks = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])
    return int(booted) + ticks / os.sysconf("SC_CLK_TCK")


def _nothing(*_: Any) -> Iterator[None]:
    return iter(())


# what is not of the system

TIMES = "a time of the broker's own work; tests of statistics and metrics"
FIXED = "no figure: a setting, a constant, or a part that does not exist here"
COUNTS = (
    "counted with the same work at Apache's broker in interop/test_figures.py, or by tests/twisted_mq/broker/metrics"
)
NOT_OF_THE_SYSTEM = {
    r"brokerStatus (putMessageEntireTimeMax|getMessageEntireTimeMax|putMessageDistributeTime|putLatency99\d?)": TIMES,
    r"brokerStatus (bootTimestamp|runtime)": "tests/twisted_mq/cli/test_doctor.py compares both with the clock",
    r"brokerStatus msg(Put|Get)Total(Yesterday|Today)Morning": "totals at midnight; tests/twisted_mq/broker/statistics",
    r"brokerStatus (brokerActive|brokerVersion.*|startAccept.*|.*Capacity|EndTransactionQueueSize)": FIXED,
    r"brokerStatus (dispatchBehindBytes|dispatchMaxBuffer|pageCacheLockTimeMills|remainTransientStoreBufferNumbs)": FIXED,
    r"brokerStatus (send|litePull|query|ack)ThreadPoolQueueSize|brokerStatus .*HeadWaitTimeMills": FIXED,
    r"brokerStatus timer(ReadBehind|EnqueueTps|DequeueTps)": "of the timer's clock; tests/twisted_mq/broker/schedule",
    r"brokerStatus scheduleMessageOffset_.*": "progress of delay levels; tests/twisted_mq/broker/schedule",
    r"brokerStatus putMessageFailedTimes|metrics mq_put_failed_total": "tests/twisted_mq/broker/test_full_disk.py",
    r"metrics rocketmq_brokeruntime_(pmdt_.*|put_latency.*|.*entire_time_max|.*headwait.*|pagecache.*)": TIMES,
    r"metrics rocketmq_brokeruntime_(dispatch.*|.*capacity|remain_transient.*|start_accept.*|(send|query)_thread.*)": FIXED,
    r"metrics rocketmq_brokeruntime_msg_(put|get)total_(today|yesterday)morning": "as brokerStatus has them",
    r"metrics rocketmq_(rpc_latency|.*_execution_time|delay_message_latency|finish_message_latency).*": TIMES,
    r"metrics rocketmq_(broker_permission|topic_number|consumer_group_number|storage_dispatch_behind_bytes)": FIXED,
    r"metrics rocketmq_(send_to_dlq|half_messages|commit_|rollback_|pop_|send_back_nums|group_retrydiff|group_dlqdiff).*": COUNTS,
    r"metrics rocketmq_(topic_retry_offset|topic_dlq_offset|timer_dequeue_total|timer_(en|de)queue_latency.*)": COUNTS,
    r"metrics python_gc_.*": "the interpreter's, by prometheus_client",
    r"metrics rocketmq_message_size_bucket": "the count and the sum of the same histogram are compared",
    r"metrics rocketmq_client_.*": "told by consumers; tests/twisted_mq/broker/metrics/test_consumers.py",
    r"metrics mq_commits_together_total": "tests/twisted_mq/broker/processors/test_commit_columns.py",
    r"metrics mq_(build_info|long_turns_total|sends_.*|ordered_.*|budget_limit_bytes)": FIXED,
}
"""A pattern of names -> why they are not compared here."""


@unittest.skipUnless(
    sys.platform == "linux" and shutil.which("df"), "the system's figures are read by df and from /proc"
)
class EveryFigureTest(BrokerServiceCase):
    timeout = 120
    maxDiff = None

    def setUp(self) -> None:
        super().setUp()
        self.log = str(self.path / "commitlog")
        if os.access(OTHER_DISK, os.W_OK) and os.stat(OTHER_DISK).st_dev != os.stat(self.path.parent).st_dev:
            self.log = tempfile.mkdtemp(dir=OTHER_DISK)  # so that log and queues have figures of their own
            self.addCleanup(shutil.rmtree, self.log)
        self._snapshot, self._sample = BrokerStatistics.take_snapshot, BrokerStatistics.sample
        self.patch(BrokerStatistics, "take_snapshot", lambda *_: None)
        self.patch(BrokerStatistics, "sample", _nothing)

    @property
    def queue(self) -> Path:
        return self.path / "consumequeue" / "T" / "0"

    # the load

    async def prepared(self) -> tuple[BrokerService, AdminCalls]:
        name_server = self.namesrv()
        broker = await self.start(
            namesrv_addr=f"127.0.0.1:{name_server.port}", store_path_commit_log=self.log, mapped_file_size_consume_queue=20_000,
            flush_commit_log_thorough_interval=3_600_000, flush_commit_log_least_pages=1_000,
            metrics_exporter_type=MetricsExporterType.PROM, metrics_prom_exporter_port=0,
        )  # fmt: skip
        admin = AdminCalls(
            client=self.client, name_servers=[f"127.0.0.1:{name_server.port}"], now_ms=lambda: int(time.time() * 1000),
            sleep=lambda seconds: deferLater(reactor, seconds),
        )  # fmt: skip
        return broker, admin

    async def load(self, broker: BrokerService) -> list[dict[str, int]]:
        """Send and pull for SECONDS steps; what the files and the answers had before each of them, and at the end."""
        statistics, base = broker.controller.statistics, broker.controller.statistics.started_seconds + 60
        counted: list[dict[str, int]] = []
        seen = {"found": 0, "missed": 0, "got": 0, "got bytes": 0}
        for second in range(SECONDS + 1):
            seen |= {"put": entries(self.queue) if self.queue.exists() else 0}
            seen["put bytes"] = sum(len(one) for one in records(Path(self.log))) if seen["put"] else 0
            counted.append(dict(seen))
            self._snapshot(statistics, base + second)
            if second % 10 == 0:
                list(self._sample(statistics, base + second, int(time.time() * 1000)))
            if second < SECONDS:
                await self._step(broker, second, seen)
        return counted

    async def _step(self, broker: BrokerService, second: int, seen: dict[str, int]) -> None:
        for number in range(1 + second % 3):
            answer = await self.ask(broker.port, RequestCode.SEND_MESSAGE_V2, SEND, b"x" * (10 + number))
            self.assertEqual(answer.code, 0)
        if second % 2:
            return
        offset = seen["got"] if second % 4 == 0 else 1_000_000
        answer = await self.ask(broker.port, RequestCode.PULL_MESSAGE, {**PULL, "queueOffset": str(offset)})
        if answer.code != 0:
            seen["missed"] += 1
            return
        sizes, body = [], answer.body
        while body:
            sizes.append(int.from_bytes(body[:4], "big"))
            body = body[sizes[-1] :]
        for name, more in (("found", 1), ("got", len(sizes)), ("got bytes", sum(sizes))):
            seen[name] += more

    async def clients(self, broker: BrokerService) -> None:
        """Consumers and a producer, each on a connection of its own, and pulls that wait."""
        for number in range(CONSUMERS + 1):
            client = RemotingClient(reactor)
            self.addCleanup(client.close)
            consumer = ConsumerData(group_name="G", subscription_data_set=[build_subscription("T", "*")])
            consumes = number < CONSUMERS
            body = HeartbeatData(
                client_id=f"c{number}",
                consumer_data_set=[consumer] if consumes else [],
                producer_data_set=[] if consumes else [ProducerData(group_name="P")],
            )
            beat = RemotingCommand.request(RequestCode.HEART_BEAT, {}, encode_body(body))
            self.assertEqual((await client.invoke(f"127.0.0.1:{broker.port}", beat)).code, 0)
            if number == 0:
                end = broker.controller.store.max_offset_in_queue("T", 1)
                waits = {**PULL, "consumerGroup": "W", "queueId": "1", "queueOffset": str(end), "sysFlag": "6",
                         "suspendTimeoutMillis": "60000"}  # fmt: skip
                for _ in range(WAITING):
                    command = RemotingCommand.request(RequestCode.PULL_MESSAGE, waits)
                    client.invoke(f"127.0.0.1:{broker.port}", command, 90.0).addErrback(lambda _: None)
        commit = {"consumerGroup": "G", "topic": "T", "queueId": "0", "commitOffset": str(COMMITTED)}
        self.assertEqual((await self.ask(broker.port, RequestCode.UPDATE_CONSUMER_OFFSET, commit)).code, 0)
        for _ in range(TIMED):
            timed = {**SEND, "e": "1", "i": "TIMER_DELAY_SEC\x013000\x02"}
            self.assertEqual((await self.ask(broker.port, RequestCode.SEND_MESSAGE_V2, timed, b"later")).code, 0)
        await self.until(lambda: broker.controller.waiting.timer.files.metrics.counts)

    async def slave(self, broker: BrokerService) -> int:
        """A slave that has half of what it was sent; the offset that it reports."""
        host, port = (broker.controller.ha.address or "").split(":")
        raw = await connectProtocol(TCP4ClientEndpoint(reactor, host, int(port)), Raw())
        self.addCleanup(raw.transport.loseConnection)
        raw.transport.write(struct.pack(">q", 0))
        end = broker.controller.store.max_physical_offset()
        await self.until(lambda: len(raw.received) >= end)
        raw.transport.write(struct.pack(">q", end // 2))
        ha = broker.controller.ha
        await self.until(lambda: [one.slave_ack_offset for one in ha.runtime_info().ha_connection_info] == [end // 2])
        return end // 2

    async def unfinished(self, broker: BrokerService) -> None:
        """A frame of which a part has come."""
        raw = await connectProtocol(TCP4ClientEndpoint(reactor, "127.0.0.1", broker.port), Raw())
        self.addCleanup(raw.transport.loseConnection)
        raw.transport.write(struct.pack(">I", 10 * UNFINISHED) + bytes(UNFINISHED - 4))
        await self.until(lambda: broker._ports.factory.traffic.budget.incomplete_bytes)

    # what is shown

    async def page(self, broker: BrokerService) -> dict[str, float]:
        """The sums of all metrics by name; lags without system groups."""
        answer = await Agent(reactor).request(b"GET", f"http://127.0.0.1:{broker.metrics_port}/metrics".encode())
        found: dict[str, float] = {}
        for family in text_string_to_metric_families((await readBody(answer)).decode()):
            for one in family.samples:
                if one.labels.get("is_system") == "true" or one.labels.get("timer_bound_s") not in (None, "3600"):
                    continue
                kind = one.labels.get("kind") if one.name == "mq_budget_bytes" else one.labels.get("processor")
                name = f"metrics {one.name}" + (f" {kind}" if kind else "")
                found[name] = found.get(name, 0.0) + one.value
        return found

    async def shown(self, broker: BrokerService, admin: AdminCalls) -> Shown:
        answer = await self.ask(broker.port, RequestCode.GET_BROKER_RUNTIME_INFO)
        table = decode_body(KVTable, answer.body).table
        one = BrokerFigures("C", "b", 0, f"127.0.0.1:{broker.port}", table)
        row = base_row("C", "b", 0, one.address, table, admin.now_ms()).split()
        more = more_row("C", "b", table).split()
        in_rate, out_rate = (re.match(r"[\d.]+", field) for field in row[5:7])
        assert in_rate is not None and out_rate is not None, row
        (slave,) = (await replication(admin, one.address)).ha_connection_info
        lags = [lag for lag in queue_lags(await consume_stats(admin, "G"), admin.now_ms()) if lag.queue.queue_id == 0]
        checks = {check.check: check.found for check in check_store(str(self.path), self.log)}
        return {
            **{f"brokerStatus {re.sub('haSlave_.*', 'haSlave', key)}": value for key, value in table.items()},
            **await self.page(broker),
            "clusterList InTPS": in_rate[0], "clusterList OutTPS": out_rate[0], "clusterList SPACE": row[-2],
            "clusterList Hour": row[-3], "clusterList InTotalToday": more[4], "clusterList OutTotalToday": more[5],
            "clusterList Timer": row[7],
            "doctor disk of the store": checks["disk"], "doctor descriptors": checks["descriptors"],
            "doctor disk of the broker": doctor.disk("b", table, {}).found,
            "console disk": percent(one.disk_ratio), "console in": one.in_rate, "console out": one.out_rate,
            "console in today": one.in_today, "console out today": one.out_today, "console oldest": one.oldest_ms,
            "console slave acknowledged": slave.slave_ack_offset, "console slave behind": slave.diff,
            "console lag": sum(lag.waiting for lag in lags), "console in flight": sum(lag.in_flight for lag in lags),
            "console committed": sum(lag.committed for lag in lags), "console end": sum(lag.end for lag in lags),
        }  # fmt: skip

    # the comparison

    async def test_each_is_what_the_system_says(self) -> None:
        broker, admin = await self.prepared()
        counted = await self.load(broker)
        await self.clients(broker)
        await self.unfinished(broker)
        acknowledged = await self.slave(broker)
        shown = await self.shown(broker, admin)
        true = self.true(broker, counted, acknowledged)
        wrong = {name: (shown.get(name), value) for name, value in true.items() if not _agree(shown.get(name), value)}
        self.assertEqual(wrong, {})
        known = [*true]
        left = [
            name
            for name in (*shown, *(f"metrics {one}" for one in names()))
            if name not in known
            and name.partition(" ")[2].split()[0] not in {one.partition(" ")[2].split()[0] for one in known}
            and not any(re.fullmatch(pattern, name) for pattern in NOT_OF_THE_SYSTEM)
        ]
        self.assertEqual(sorted(set(left)), [])

    def true(self, broker: BrokerService, counted: list[dict[str, int]], acknowledged: int) -> dict[str, Any]:
        """A name -> the value; a pair is the value and how far from it the shown one may be."""
        all_records, last, log, queues = [*records(Path(self.log))], counted[-1], df(self.log), df(str(self.queue))
        end = sum(map(len, all_records))
        now_ms = time.time() * 1000
        unread_ms = now_ms - store_time_ms(all_records[COMMITTED])
        not_pulled_ms = now_ms - store_time_ms(all_records[last["got"]])
        virtual, resident = statm_bytes()

        def rates(*names: str) -> list[float]:
            return [_rate(counted, seconds, *names) for seconds in (10, 60, 600)]

        put, found, missed, got = rates("put"), rates("found"), rates("missed"), rates("got")
        total = rates("found", "missed")
        percent_used, lag = log["percent"], last["put"] - COMMITTED
        return {
            # disks
            "brokerStatus commitLogDiskRatio": (percent_used / 100, 0.0101),
            f"brokerStatus commitLogDiskRatio_{self.log}": (percent_used / 100, 0.0101),
            "brokerStatus consumeQueueDiskRatio": (queues["percent"] / 100, 0.0101),
            "brokerStatus commitLogDirCapacity": re.compile(
                rf"Total : {re.escape(_gib(log['total']))}, Free : [\d.]+ \wiB\.$"
            ),
            "metrics rocketmq_brokeruntime_commitlog_disk_ratio": (percent_used / 100, 0.0101),
            "metrics rocketmq_brokeruntime_consumequeue_disk_ratio": (queues["percent"] / 100, 0.0101),
            "metrics rocketmq_brokeruntime_commitlogdir_capacity_total": log["total"],
            "metrics rocketmq_brokeruntime_commitlogdir_capacity_free": (log["available"], GIB),
            "metrics rocketmq_storage_size_bytes": (log["used"], GIB),
            "clusterList SPACE": (percent_used / 100, 0.0101),
            "doctor disk of the store": re.compile(rf"({_near(percent_used)})% used, .* GiB free"),
            "doctor disk of the broker": re.compile(rf"({_near(percent_used)})% used"),
            "console disk": re.compile(rf"({_near(percent_used)})\s?%"),
            # the log
            "brokerStatus commitLogMinOffset": 0, "brokerStatus commitLogMaxOffset": end,
            "metrics rocketmq_brokeruntime_commitlog_minoffset": 0, "metrics rocketmq_brokeruntime_commitlog_maxoffset": end,
            "brokerStatus remainHowManyDataToFlush": _gib(end),
            "metrics rocketmq_brokeruntime_remain_howmanydata_toflush": end,
            "metrics rocketmq_storage_flush_behind_bytes": end,
            "brokerStatus earliestMessageTimeStamp": store_time_ms(all_records[0]),
            "metrics rocketmq_brokeruntime_earliest_message_timestamp": store_time_ms(all_records[0]),
            "metrics rocketmq_storage_message_reserve_time_milliseconds": (now_ms - store_time_ms(all_records[0]), 10_000),
            "console oldest": store_time_ms(all_records[0]), "clusterList Hour": (0.0, 0.1),
            # memory, files, processor time
            "metrics process_resident_memory_bytes": (resident, 16 * MIB),
            "metrics process_virtual_memory_bytes": (virtual, 128 * MIB),
            "metrics process_cpu_seconds_total": (sum(os.times()[:2]), 2.0),
            "metrics process_start_time_seconds": (start_seconds(), 2.0),
            "metrics process_open_fds": (len(os.listdir("/proc/self/fd")), 4),
            "metrics process_max_fds": resource.getrlimit(resource.RLIMIT_NOFILE)[0],
            "doctor descriptors": re.compile(rf"\d+ of {resource.getrlimit(resource.RLIMIT_NOFILE)[0]} open files"),
            "metrics mq_budget_bytes incomplete": UNFINISHED,
            # sockets
            "metrics mq_connections": established(broker.port),
            "metrics rocketmq_producer_connections": 1, "metrics rocketmq_consumer_connections": CONSUMERS,
            "metrics rocketmq_group_count": CONSUMERS, "metrics rocketmq_producer_count": 1,
            "brokerStatus pullThreadPoolQueueSize": WAITING, "metrics rocketmq_processor_watermark pull": WAITING,
            "metrics rocketmq_brokeruntime_pull_threadpoolqueue_size": WAITING, "metrics mq_pending_answers": WAITING,
            # rates
            "brokerStatus putTps": put, "brokerStatus getFoundTps": found, "brokerStatus getMissTps": missed,
            "brokerStatus getTotalTps": total, "brokerStatus getTransferredTps": got,
            **_by_window("put", put), **_by_window("getfound", found), **_by_window("getmiss", missed),
            **_by_window("gettotal", total), **_by_window("gettransfered", got),
            "metrics rocketmq_broker_tps": put[0], "metrics rocketmq_broker_qps": got[0],
            "clusterList InTPS": (put[0], 0.006), "clusterList OutTPS": (got[0], 0.006),
            "console in": put[0], "console out": got[0],
            "metrics rocketmq_producer_tps": _sampled(counted, "put"),
            "metrics rocketmq_producer_message_size": _sampled(counted, "put bytes"),
            "metrics rocketmq_consumer_tps": _sampled(counted, "got"),
            "metrics rocketmq_consumer_message_size": _sampled(counted, "got bytes"),
            # totals
            "brokerStatus putMessageTimesTotal": len(all_records), "brokerStatus putMessageSizeTotal": end,
            "brokerStatus putMessageAverageSize": end / len(all_records),
            "metrics rocketmq_brokeruntime_putmessage_times_total": len(all_records),
            "metrics rocketmq_brokeruntime_put_message_size_total": end,
            "metrics rocketmq_brokeruntime_put_message_average_size": end / len(all_records),
            "brokerStatus msgPutTotalTodayNow": last["put"], "brokerStatus msgGetTotalTodayNow": last["got"],
            "metrics rocketmq_brokeruntime_msg_put_total_today_now": last["put"],
            "metrics rocketmq_brokeruntime_msg_gettotal_today_now": last["got"],
            "clusterList InTotalToday": last["put"], "clusterList OutTotalToday": last["got"],
            "console in today": last["put"], "console out today": last["got"],
            "metrics rocketmq_messages_in_total": last["put"], "metrics rocketmq_throughput_in_total": last["put bytes"],
            "metrics rocketmq_messages_out_total": last["got"], "metrics rocketmq_throughput_out_total": last["got bytes"],
            "metrics rocketmq_message_size_count": last["put"], "metrics rocketmq_message_size_sum": last["put bytes"],
            "metrics rocketmq_producer_offset": last["put"],
            # lag
            "metrics rocketmq_consumer_lag_messages": lag, "metrics rocketmq_group_diff": lag, "console lag": lag,
            "metrics rocketmq_consumer_inflight_messages": last["got"] - COMMITTED,
            "console in flight": last["got"] - COMMITTED,
            "metrics rocketmq_consumer_ready_messages": last["put"] - last["got"],
            "metrics rocketmq_consumer_offset": COMMITTED, "console committed": COMMITTED, "console end": last["put"],
            "metrics rocketmq_consumer_lag_latency_milliseconds": (unread_ms, 10_000),
            "metrics rocketmq_group_get_latency_by_storetime": (unread_ms, 10_000),
            "metrics rocketmq_consumer_queueing_latency_milliseconds": (not_pulled_ms, 10_000),
            "brokerStatus timerOffsetBehind": 0, "brokerStatus timerCongestNum": TIMED,
            "clusterList Timer": re.compile(r"\d+-0\(0\.0w,"),
            "metrics rocketmq_timer_enqueue_lag": 0, "metrics rocketmq_timer_dequeue_lag": TIMED,
            "metrics rocketmq_timing_messages": TIMED, "metrics rocketmq_timer_message_snapshot": TIMED,
            "metrics rocketmq_timer_enqueue_total": TIMED,
            "metrics mq_ha_slave_behind_bytes": end - acknowledged, "metrics rocketmq_broker_commitlog_diff": end - acknowledged,
            "brokerStatus haSlave": re.compile(f"ackOffset : {acknowledged}, diff : {end - acknowledged}, "),
            "console slave acknowledged": acknowledged, "console slave behind": end - acknowledged,
        }  # fmt: skip


def names() -> Iterator[str]:
    """The names of all metrics of a broker, with their units."""
    families = (
        *builtin.FAMILIES,
        *timer.FAMILIES,
        *pops.FAMILIES,
        *own.FAMILIES,
        *process.FAMILIES,
        *exporter.FAMILIES,
    )
    for family in families:
        yield family.shown_name + ("_count" if family.kind == "histogram" else "")
    collected: list[Metric] = [*process.of_process()]
    for metric in collected:
        if metric.name.startswith("process"):
            yield metric.name + ("_total" if metric.type == "counter" else "")


def _agree(shown: Any, true: Any) -> bool:
    if shown is None:
        return False
    if isinstance(true, re.Pattern):
        return true.match(str(shown)) is not None
    if isinstance(true, str):
        return bool(shown == true)
    if isinstance(true, list):
        return len(str(shown).split()) == len(true) and all(map(_agree, str(shown).split(), true))
    value, within = true if isinstance(true, tuple) else (true, 1e-6)
    return abs(float(shown) - value) <= within


def _rate(counted: list[dict[str, int]], seconds: int, *names: str) -> float:
    window = min(seconds, len(counted) - 1)
    return sum(counted[-1][name] - counted[-1 - window][name] for name in names) / window


def _sampled(counted: list[dict[str, int]], name: str) -> float:
    """By the samples of each tenth second, of which seven are kept: the last minute."""
    return (counted[SECONDS][name] - counted[SECONDS - 60][name]) / 60


def _by_window(name: str, rates: list[float]) -> dict[str, float]:
    windows = zip((10, 60, 600), rates, strict=True)
    return {f"metrics rocketmq_brokeruntime_{name}_tps{seconds}": rate for seconds, rate in windows}


def _near(percent: int) -> str:
    """A pattern for a percentage and its neighbours: other programs write meanwhile."""
    return "|".join(str(one) for one in (percent - 1, percent, percent + 1))


def _gib(size: int) -> str:
    """Bytes as `numfmt` of GNU and the broker print them: 1536 is "1.5 KiB"."""
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if size < 1024 or unit == "TiB":
            return f"{size} B" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024  # type: ignore[assignment]
    raise AssertionError(size)
