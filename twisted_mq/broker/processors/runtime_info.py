"""Reports the broker's state: codes 28 (GET_BROKER_RUNTIME_INFO), 300 (QUERY_TOPIC_CONSUME_BY_WHO) and 315
(VIEW_BROKER_STATS_DATA: counters over a minute, an hour and a day).

Keys are those of Apache's AdminBrokerProcessor.prepareRuntimeInfo. Values of parts that do not exist here (thread pools
other than the waiting sends and pulls, a transient store pool) are left out or 0. A master's slaves, which Apache's table
does not have, are rows of their own.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Protocol

from twisted.internet.interfaces import IReactorTime

from twisted_mq.broker.clients.consumer_manager import ConsumerManager
from twisted_mq.broker.clients.consumer_offset_manager import ConsumerOffsetManager
from twisted_mq.broker.ha.service import HAService
from twisted_mq.broker.ha.slave_rows import slave_rows
from twisted_mq.broker.long_polling import LongPolling
from twisted_mq.broker.options import BrokerOptions
from twisted_mq.broker.schedule.waiting_messages import WaitingMessages
from twisted_mq.broker.statistics.broker_statistics import BrokerStatistics
from twisted_mq.broker.statistics.call_times import TimedCall
from twisted_mq.broker.statistics.delivery_counts import SCHEDULE_CONSUMER
from twisted_mq.broker.waiting_requests import WaitingKind
from twisted_mq.ordering.deleted import DELETED_UNCONSUMED, deleted_text
from twisted_mq.protocol.bodies import BrokerStatsData, BrokerStatsItem, GroupList, KVTable, encode_body
from twisted_mq.protocol.codes import RequestCode, ResponseCode
from twisted_mq.protocol.errors import BrokerError
from twisted_mq.protocol.headers import QueryTopicConsumeByWhoRequestHeader, ViewBrokerStatsDataRequestHeader
from twisted_mq.protocol.names.system_topics import TIMER_TOPIC
from twisted_mq.protocol.wire.command import CURRENT_VERSION, RemotingCommand
from twisted_mq.protocol.wire.header_codec import decode_header
from twisted_mq.remoting.channel import Answer, Channel
from twisted_mq.storage.files.disk_space import disk_space
from twisted_mq.storage.files.paths import StorePaths
from twisted_mq.storage.interfaces import GetResult, IMessageStore, InnerMessage, PutResult
from twisted_mq.storage.log.log_scan import first_store_timestamp

NO_TRANSIENT_POOL = (1 << 31) - 1
"""The value that Apache's broker reports without a transient store pool."""

VERSION_NAME = "V5_3_3"
_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")


def human_bytes(count: float) -> str:
    """Return bytes as text: 1536 is "1.5 KiB" (Apache: MixAll.humanReadableByteCount)."""
    if count < 1024:
        return f"{int(count)} B"
    for unit in _UNITS[1:]:
        count /= 1024
        if count < 1024 or unit == _UNITS[-1]:
            break
    return f"{count:.1f} {unit}"


def human_time(seconds: float) -> str:
    """Return the time that the broker has run, as Apache prints it."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    return f"[ {days} days, {hours} hours, {minutes} minutes, {rest} seconds ]"


class MeasuredParts(Protocol):
    """The parts of the broker that are measured."""

    options: BrokerOptions
    clock: IReactorTime
    now_ms: Callable[[], int]
    store: IMessageStore
    offsets: ConsumerOffsetManager
    consumers: ConsumerManager
    statistics: BrokerStatistics
    timed_put: TimedCall[[InnerMessage], PutResult]
    timed_get: TimedCall[..., GetResult]
    polling: LongPolling
    waiting: WaitingMessages
    ha: HAService
    acts_as_master: bool


class RuntimeInfoProcessor:
    """Reports metrics to operators; every value is computed when it is asked for."""

    def __init__(self, broker: MeasuredParts) -> None:
        self._broker = broker
        self.processors = {
            RequestCode.GET_BROKER_RUNTIME_INFO: self.runtime_info,
            RequestCode.QUERY_TOPIC_CONSUME_BY_WHO: self.groups_of_topic,
        }

    def runtime_info(self, channel: Channel, command: RemotingCommand) -> Answer:
        """Return all values as one table of texts."""
        return command.answer(body=encode_body(KVTable(table=self.table())))

    def table(self) -> dict[str, str]:
        """Return the table before it is encoded."""
        delays = self._broker.waiting.schedule.running_stats()
        table = {**self._statistics(), **self._store(), **self._broker_state(), **self._timer(), **delays}
        return table | slave_rows(self._broker.ha.runtime_info())

    def groups_of_topic(self, channel: Channel, command: RemotingCommand) -> Answer:
        """Return the groups that consume a topic now, or have an offset on it."""
        topic = decode_header(QueryTopicConsumeByWhoRequestHeader, command).topic
        online = {name for name, info in self._broker.consumers.groups.items() if topic in info.subscriptions}
        groups = sorted(online.union(self._broker.offsets.groups_of(topic)))
        return command.answer(body=encode_body(GroupList(group_list=groups)))

    def _statistics(self) -> dict[str, str]:
        broker, statistics = self._broker, self._broker.statistics
        running = broker.clock.seconds() - statistics.started_seconds
        return {
            "bootTimestamp": str(int(statistics.started_seconds * 1000)),
            "runtime": human_time(running),
            "putMessageTimesTotal": str(max(1, statistics.put_messages)),
            "putMessageFailedTimes": str(statistics.put_failed),
            "putMessageSizeTotal": str(statistics.put_bytes),
            "putMessageAverageSize": str(statistics.put_bytes / max(1, statistics.put_messages)),
            "putTps": statistics.rates("put_messages"),
            "getFoundTps": statistics.rates("get_found"),
            "getMissTps": statistics.rates("get_missed"),
            "getTotalTps": statistics.rates("get_found", "get_missed"),
            "getTransferredTps": statistics.rates("get_messages"),
            "putMessageEntireTimeMax": str(broker.timed_put.times.longest_ms),
            "getMessageEntireTimeMax": str(broker.timed_get.times.longest_ms),
            "putMessageDistributeTime": broker.timed_put.times.ranges(),
            "putLatency99": str(broker.timed_put.times.within(0.99)),
            "putLatency999": str(broker.timed_put.times.within(0.999)),
            "msgPutTotalYesterdayMorning": str(statistics.day.put_yesterday_morning),
            "msgPutTotalTodayMorning": str(statistics.day.put_this_morning),
            "msgPutTotalTodayNow": str(statistics.user_messages(statistics.puts)),
            "msgGetTotalYesterdayMorning": str(statistics.day.get_yesterday_morning),
            "msgGetTotalTodayMorning": str(statistics.day.get_this_morning),
            "msgGetTotalTodayNow": str(statistics.user_messages(statistics.gets)),
        }

    def _store(self) -> dict[str, str]:
        broker, store = self._broker, self._broker.store
        folder = broker.options.store_path_root_dir
        table = {
            "commitLogMinOffset": str(store.min_physical_offset()),
            "commitLogMaxOffset": str(store.max_physical_offset()),
            "dispatchBehindBytes": "0",
            "remainHowManyDataToFlush": human_bytes(store.max_physical_offset() - store.flushed_offset()),
            "earliestMessageTimeStamp": str(
                first_store_timestamp(store.look_message(store.min_physical_offset()) or b"") or -1
            ),
            "pageCacheLockTimeMills": "0",
            "dispatchMaxBuffer": "0",
            "remainTransientStoreBufferNumbs": str(NO_TRANSIENT_POOL),
        }
        deleted = store.deleted_unconsumed()
        if deleted:
            table[DELETED_UNCONSUMED] = deleted_text(deleted)
        if os.path.isdir(folder):
            table |= _disks(StorePaths(folder, broker.options.commit_log_path))
        return table

    def _timer(self) -> dict[str, str]:
        """Return the timer's lag (s, and messages), the number of waiting messages, and the timer's rates."""
        broker, timer = self._broker, self._broker.waiting.timer
        behind_ms = broker.now_ms() - timer.read_ms if timer.read_ms else 0
        behind = broker.store.max_offset_in_queue(TIMER_TOPIC, 0) - timer.queue_offset
        statistics = broker.statistics
        return {
            "timerReadBehind": str(max(0, behind_ms // 1000)),
            "timerOffsetBehind": str(max(0, behind)),
            "timerCongestNum": str(sum(metric.count for metric in timer.files.metrics.counts.values())),
            "timerEnqueueTps": str(statistics.topic_put_tps(TIMER_TOPIC)),
            "timerDequeueTps": str(statistics.group_get_tps(SCHEDULE_CONSUMER, TIMER_TOPIC)),
        }

    def _broker_state(self) -> dict[str, str]:
        options = self._broker.options
        waiting = {"send": 0, "pull": self._broker.polling.count(WaitingKind.PULL), "litePull": 0, "query": 0, "ack": 0}
        capacities = {"litePull": options.pull_thread_pool_queue_capacity, "query": 0, "ack": 0}
        table = {
            "brokerActive": str(options.broker_id == 0 or self._broker.acts_as_master).lower(),
            "brokerVersionDesc": VERSION_NAME,
            "brokerVersion": str(CURRENT_VERSION),
            "startAcceptSendRequestTimeStamp": str(options.start_accept_send_request_time_stamp),
            "sendThreadPoolQueueCapacity": str(options.send_thread_pool_queue_capacity),
            "pullThreadPoolQueueCapacity": str(options.pull_thread_pool_queue_capacity),
            "EndTransactionQueueSize": "0",
            "EndTransactionThreadPoolQueueCapacity": "0",
        }
        for name, capacity in capacities.items():
            table[f"{name}ThreadPoolQueueCapacity"] = str(capacity)
        for name, size in waiting.items():
            table[f"{name}ThreadPoolQueueSize"] = str(size)
            table[f"{name}ThreadPoolQueueHeadWaitTimeMills"] = "0"
        return table


def _disks(paths: StorePaths) -> dict[str, str]:
    """Return how full the disks of the log and of the queues are, measured as retention measures it."""
    log = disk_space(paths.commit_log if os.path.isdir(paths.commit_log) else paths.root)
    queues = disk_space(paths.consume_queues if os.path.isdir(paths.consume_queues) else paths.root)
    return {
        "commitLogDiskRatio": str(log.used_ratio),
        f"commitLogDiskRatio_{paths.commit_log}": str(log.used_ratio),
        "consumeQueueDiskRatio": str(queues.used_ratio),
        "commitLogDirCapacity": f"Total : {human_bytes(log.total)}, Free : {human_bytes(log.available)}.",
    }


class BrokerStatsParts(Protocol):
    """The parts of the broker that questions about statistics use."""

    options: BrokerOptions
    statistics: BrokerStatistics


class BrokerStatsProcessor:
    """Shows one statistic by its name and key."""

    def __init__(self, broker: BrokerStatsParts) -> None:
        self._options = broker.options
        self._statistics = broker.statistics
        self.processors = {RequestCode.VIEW_BROKER_STATS_DATA: self.stats}

    def stats(self, channel: Channel, command: RemotingCommand) -> Answer:
        """Return sum, rate per second and average per request; SYSTEM_ERROR if nothing was counted under the key."""
        header = decode_header(ViewBrokerStatsDataRequestHeader, command)
        cluster = self._options.broker_cluster_name
        windows = self._statistics.windows(header.stats_name, header.stats_key, cluster)
        if windows is None:
            remark = f"The stats <{header.stats_name}> <{header.stats_key}> not exist"
            raise BrokerError(ResponseCode.SYSTEM_ERROR, remark)
        minute, hour, day = (BrokerStatsItem(sum=one.sum, tps=one.tps, avgpt=one.average) for one in windows)
        return command.answer(body=encode_body(BrokerStatsData(stats_minute=minute, stats_hour=hour, stats_day=day)))
