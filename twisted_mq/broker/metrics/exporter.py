"""Makes the metrics of rocketmq-exporter, so that its dashboards work without that process.

Offsets and lags are those of this broker: for a topic on several brokers, sum over `broker`. Metrics that the exporter
declares and never sets are left out (rocketmq_group_consume_*).
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator

from twisted_mq.broker.metrics import consumers
from twisted_mq.broker.metrics.lag import age
from twisted_mq.broker.metrics.scrape import Scrape
from twisted_mq.metrics.family import Family, Row
from twisted_mq.protocol.names.system_topics import DLQ_PREFIX, RETRY_PREFIX, is_system_topic

OF_GROUP = ("group", "topic", "countOfOnlineConsumers", "msgModel")
OF_TOPIC = ("cluster", "broker", "topic")
OF_READS = ("cluster", "broker", "topic", "group")
OF_BROKER = ("cluster", "brokerIP", "broker")
OF_RUNTIME = ("cluster", "brokerIP", "brokerHost", "des", "boottime", "broker_version")
MODELS = {"CLUSTERING": "0", "BROADCASTING": "1"}


def _names(scrape: Scrape) -> tuple[str, str]:
    options = scrape.broker.options
    return options.broker_cluster_name, options.broker_name


def _lag_of_groups(is_retry: bool) -> Callable[[Scrape], Iterator[Row]]:
    def rows(scrape: Scrape) -> Iterator[Row]:
        for lag in scrape.lags:
            if lag.is_retry is is_retry and not lag.is_system:
                yield _of_group(scrape, lag.group, lag.topic), lag.lag

    return rows


def _of_group(scrape: Scrape, group: str, topic: str) -> tuple[str, str, str, str]:
    info = scrape.broker.consumers.groups.get(group)
    model = MODELS.get((info.message_model if info is not None else None) or "CLUSTERING", "0")
    return group, topic, str(len(info.clients) if info is not None else 0), model


def _dead_letters(scrape: Scrape) -> Iterator[Row]:
    for topic, end in _ends(scrape, _is_dead):
        yield _of_group(scrape, topic.removeprefix(DLQ_PREFIX), topic), end


def _ends(scrape: Scrape, wanted: Callable[[str], bool]) -> Iterator[tuple[str, int]]:
    """Yield how many messages each topic ever had here."""
    store = scrape.broker.store
    for topic in filter(wanted, scrape.topics):
        yield topic, sum(store.max_offset_in_queue(topic, queue_id) for queue_id in store.queue_ids(topic))


def _offsets(wanted: Callable[[str], bool]) -> Callable[[Scrape], Iterator[Row]]:
    """Return the rows of offsets; dead letters are named by their group."""
    return lambda scrape: (
        ((*_names(scrape), topic.removeprefix(DLQ_PREFIX)), end) for topic, end in _ends(scrape, wanted)
    )


def _is_users(topic: str) -> bool:
    return not is_system_topic(topic) and not topic.startswith((RETRY_PREFIX, DLQ_PREFIX))


def _is_retry(topic: str) -> bool:
    return topic.startswith(RETRY_PREFIX)


def _is_dead(topic: str) -> bool:
    return topic.startswith(DLQ_PREFIX)


def _committed(scrape: Scrape) -> Iterator[Row]:
    return (((*_names(scrape), lag.topic, lag.group), lag.committed) for lag in scrape.lags if not lag.is_system)


def _storetime_latency(scrape: Scrape) -> Iterator[Row]:
    for lag in scrape.lags:
        if not lag.is_system:
            yield (*_names(scrape), lag.topic, lag.group), age(lag.oldest_unread_ms, scrape.now_ms)


def _producers(scrape: Scrape) -> Iterator[Row]:
    groups = scrape.broker.producers.groups
    return (((*_names(scrape), group), len(clients)) for group, clients in list(groups.items()))


def _tps(statistic: str, counters: str, parted: bool) -> Callable[[Scrape], Iterator[Row]]:
    """Return messages per second over the last minute; with `parted`, the counters' keys are topic@group."""

    def rows(scrape: Scrape) -> Iterator[Row]:
        statistics = scrape.broker.statistics
        for key in list(getattr(statistics, counters)):
            topic, at, group = key.partition("@")
            windows = statistics.windows(statistic, key, "") if key else None
            if windows is not None and bool(at) is parted and not is_system_topic(topic):
                yield (*_names(scrape), topic, *([group] if parted else [])), windows[0].tps

    return rows


def _of_broker(key: str) -> Callable[[Scrape], Iterator[Row]]:
    """Return the first of three windows."""

    def rows(scrape: Scrape) -> Iterator[Row]:
        cluster, name = _names(scrape)
        yield (cluster, scrape.broker.address, name), float(scrape.runtime[key].split()[0])

    return rows


RUNTIME: dict[str, tuple[str, int]] = {
    "msg_put_total_today_now": ("msgPutTotalTodayNow", 0),
    "msg_gettotal_today_now": ("msgGetTotalTodayNow", 0),
    "msg_puttotal_todaymorning": ("msgPutTotalTodayMorning", 0),
    "msg_gettotal_todaymorning": ("msgGetTotalTodayMorning", 0),
    "msg_puttotal_yesterdaymorning": ("msgPutTotalYesterdayMorning", 0),
    "msg_gettotal_yesterdaymorning": ("msgGetTotalYesterdayMorning", 0),
    "dispatch_behind_bytes": ("dispatchBehindBytes", 0),
    "dispatch_maxbuffer": ("dispatchMaxBuffer", 0),
    "put_message_size_total": ("putMessageSizeTotal", 0),
    "put_message_average_size": ("putMessageAverageSize", 0),
    "putmessage_times_total": ("putMessageTimesTotal", 0),
    "putmessage_entire_time_max": ("putMessageEntireTimeMax", 0),
    "getmessage_entire_time_max": ("getMessageEntireTimeMax", 0),
    "put_latency_99": ("putLatency99", 0),
    "put_latency_999": ("putLatency999", 0),
    "remain_transientstore_buffer_numbs": ("remainTransientStoreBufferNumbs", 0),
    "earliest_message_timestamp": ("earliestMessageTimeStamp", 0),
    "start_accept_sendrequest_time": ("startAcceptSendRequestTimeStamp", 0),
    "pagecache_lock_time_mills": ("pageCacheLockTimeMills", 0),
    "commitlog_disk_ratio": ("commitLogDiskRatio", 0),
    "consumequeue_disk_ratio": ("consumeQueueDiskRatio", 0),
    "commitlog_maxoffset": ("commitLogMaxOffset", 0),
    "commitlog_minoffset": ("commitLogMinOffset", 0),
    **{
        f"{name}_tps{seconds}": (key, index)
        for name, key in (
            ("getfound", "getFoundTps"),
            ("gettotal", "getTotalTps"),
            ("gettransfered", "getTransferredTps"),
            ("getmiss", "getMissTps"),
            ("put", "putTps"),
        )
        for index, seconds in enumerate((10, 60, 600))
    },
    "pull_threadpoolqueue_size": ("pullThreadPoolQueueSize", 0),
    "query_threadpoolqueue_size": ("queryThreadPoolQueueSize", 0),
    "pull_threadpoolqueue_headwait_timemills": ("pullThreadPoolQueueHeadWaitTimeMills", 0),
    "query_threadpoolqueue_headwait_timemills": ("queryThreadPoolQueueHeadWaitTimeMills", 0),
    "send_threadpoolqueue_headwait_timemills": ("sendThreadPoolQueueHeadWaitTimeMills", 0),
    "send_threadpoolqueue_capacity": ("sendThreadPoolQueueCapacity", 0),
    "pull_threadpoolqueue_capacity": ("pullThreadPoolQueueCapacity", 0),
    "query_threadpool_queue_capacity": ("queryThreadPoolQueueCapacity", 0),
    "send_threadpool_queue_size": ("sendThreadPoolQueueSize", 0),
}
"""The rest of a name after rocketmq_brokeruntime_ -> a key of GET_BROKER_RUNTIME_INFO, and the index of its number."""

RANGES = (
    "0ms", "0to10ms", "10to50ms", "50to100ms", "100to200ms", "200to500ms", "500to1s", "1to2s", "2to3s", "3to4s", "4to5s",
    "5to10s", "10stomore",
)  # fmt: skip
"""Ranges of rocketmq_brokeruntime_pmdt_, in the order of putMessageDistributeTime."""


def _runtime_labels(scrape: Scrape) -> tuple[str, ...]:
    broker, table = scrape.broker, scrape.runtime
    cluster, name = _names(scrape)
    return (cluster, broker.address, name, table["brokerVersionDesc"], table["bootTimestamp"], table["brokerVersion"])


def _runtime(key: str, index: int) -> Callable[[Scrape], Iterator[Row]]:
    def rows(scrape: Scrape) -> Iterator[Row]:
        if key in scrape.runtime:  # a store in memory has no disk
            yield _runtime_labels(scrape), float(scrape.runtime[key].split()[index])

    return rows


def _disk(part: str) -> Callable[[Scrape], Iterator[Row]]:
    def rows(scrape: Scrape) -> Iterator[Row]:
        if scrape.disk is not None:
            yield _runtime_labels(scrape), getattr(scrape.disk, part)

    return rows


def _not_flushed(scrape: Scrape) -> Iterator[Row]:
    yield _runtime_labels(scrape), scrape.not_flushed


def _put_times(index: int) -> Callable[[Scrape], Iterator[Row]]:
    def rows(scrape: Scrape) -> Iterator[Row]:
        counts = re.findall(r":(\d+)", scrape.runtime["putMessageDistributeTime"])
        yield _runtime_labels(scrape), float(counts[index])

    return rows


def _commit_log_diff(scrape: Scrape) -> Iterator[Row]:
    """Return the lag of the slave that is furthest behind."""
    slaves = scrape.broker.ha.runtime_info().ha_connection_info
    if slaves:
        cluster, name = _names(scrape)
        yield (cluster, scrape.broker.address, name), max(one.diff for one in slaves)


def _sums_by_group(scrape: Scrape) -> Iterator[Row]:
    """Return the members by the address that they connect from."""
    members: dict[tuple[str, str, str], int] = defaultdict(int)
    for name, group in scrape.broker.consumers.groups.items():
        for channel in group.clients:
            members[channel.address.rpartition(":")[0], scrape.broker.address, name] += 1
    return iter(members.items())


def _gauge(name: str, help: str, labels: tuple[str, ...], rows: Callable[[Scrape], Iterator[Row]]) -> Family[Scrape]:
    return Family(f"rocketmq_{name}", "gauge", help, labels, rows)


FAMILIES: tuple[Family[Scrape], ...] = (
    _gauge("group_diff", "Messages that a group is behind", OF_GROUP, _lag_of_groups(False)),
    _gauge("group_retrydiff", "Messages that a group will retry", OF_GROUP, _lag_of_groups(True)),
    _gauge("group_dlqdiff", "Dead letters of a group", OF_GROUP, _dead_letters),
    _gauge("group_count", "Members of a group", ("caddr", "localaddr", "group"), _sums_by_group),
    _gauge("producer_count", "Producers of a group", ("cluster", "broker", "group"), _producers),
    _gauge("producer_offset", "Messages stored in a topic since its creation", OF_TOPIC, _offsets(_is_users)),
    _gauge("topic_retry_offset", "Retry messages of a group since its creation", OF_TOPIC, _offsets(_is_retry)),
    _gauge(
        "topic_dlq_offset",
        "Dead letters of a group since its creation",
        ("cluster", "broker", "group"),
        _offsets(_is_dead),
    ),
    _gauge("producer_tps", "Messages per second", OF_TOPIC, _tps("TOPIC_PUT_NUMS", "puts", False)),
    _gauge("producer_message_size", "Bytes per second", OF_TOPIC, _tps("TOPIC_PUT_SIZE", "puts", False)),
    _gauge("consumer_offset", "Committed offsets, sum of all queues", OF_READS, _committed),
    _gauge("consumer_tps", "Messages per second", OF_READS, _tps("GROUP_GET_NUMS", "gets", True)),
    _gauge("consumer_message_size", "Bytes per second", OF_READS, _tps("GROUP_GET_SIZE", "gets", True)),
    _gauge("send_back_nums", "Messages sent back per second", OF_READS, _tps("SNDBCK_PUT_NUMS", "sent_back", True)),
    _gauge("group_get_latency_by_storetime", "Age of the oldest unread message, in ms", OF_READS, _storetime_latency),
    _gauge("broker_tps", "Messages stored per second", OF_BROKER, _of_broker("putTps")),
    _gauge("broker_qps", "Messages delivered per second", OF_BROKER, _of_broker("getTransferredTps")),
    _gauge("broker_commitlog_diff", "Bytes that the last slave is behind", OF_BROKER, _commit_log_diff),
    _gauge(
        "brokeruntime_commitlogdir_capacity_total", "Bytes of the disk of the commit log", OF_RUNTIME, _disk("total")
    ),
    _gauge(
        "brokeruntime_commitlogdir_capacity_free",
        "Bytes of it that can still be written",
        OF_RUNTIME,
        _disk("available"),
    ),
    _gauge("brokeruntime_remain_howmanydata_toflush", "Bytes that are not on disk yet", OF_RUNTIME, _not_flushed),
    *(
        _gauge(f"brokeruntime_{name}", f"{key} of the runtime info", OF_RUNTIME, _runtime(key, index))
        for name, (key, index) in RUNTIME.items()
    ),
    *(
        _gauge(
            f"brokeruntime_pmdt_{name}",
            "Timed sends by duration",
            OF_RUNTIME,
            _put_times(index),
        )
        for index, name in enumerate(RANGES)
    ),
    *consumers.FAMILIES,
)
