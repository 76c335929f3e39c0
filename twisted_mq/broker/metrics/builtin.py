"""Makes the metrics of 5.3.3's own exporter, with its names and labels (Apache: BrokerMetricsManager,
DefaultStoreMetricsManager).

message_type is the topic's type (its attribute message.type), not each message's: counting by message would cost each send.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator

from twisted_mq.broker.metrics.lag import Lag, age, flag, is_system_group
from twisted_mq.broker.metrics.scrape import Scrape
from twisted_mq.broker.statistics.request_times import names_of_codes
from twisted_mq.broker.waiting_requests import WaitingKind
from twisted_mq.metrics.family import Family, Row, one
from twisted_mq.protocol.names.system_topics import is_system_topic
from twisted_mq.protocol.names.versions import version_name

REMOTING = "remoting"
LOCAL_DISK = ("local", "disk")
STORAGE = ("storage_type", "storage_medium")
OF_TOPIC = ("topic", "message_type", "is_system")
OF_READS = ("topic", "consumer_group", "is_system")
OF_LAG = ("consumer_group", "topic", "is_retry", "is_system")
PROCESSORS = (
    "send", "async_put", "pull", "ack", "query_message", "client_manager", "heartbeat", "lite_pull", "transaction",
    "consumer_manager", "admin", "reply",
)  # fmt: skip
CONSUME_MODES = {"CONSUME_ACTIVELY": "pull", "CONSUME_PASSIVELY": "push", "CONSUME_POP": "pop"}


def _waiting(scrape: Scrape) -> Iterator[Row]:
    """Return the waiting pulls: no other requests wait, because there are no queues before the processors here."""
    pulls = scrape.broker.polling.count(WaitingKind.PULL)
    return (((name,), pulls if name == "pull" else 0) for name in PROCESSORS)


def _puts(field: str) -> Callable[[Scrape], Iterator[Row]]:
    def rows(scrape: Scrape) -> Iterator[Row]:
        for topic, counter in list(scrape.broker.statistics.puts.items()):
            if topic:
                yield (topic, _message_type(scrape, topic), flag(is_system_topic(topic))), getattr(counter, field)

    return rows


def _gets(field: str) -> Callable[[Scrape], Iterator[Row]]:
    def rows(scrape: Scrape) -> Iterator[Row]:
        for key, counter in list(scrape.broker.statistics.gets.items()):
            topic, at, group = key.partition("@")
            if at:
                system = is_system_topic(topic) or is_system_group(group)
                yield (topic, group, flag(system)), getattr(counter, field)

    return rows


def _sizes(scrape: Scrape) -> Iterator[Row]:
    statistics = scrape.broker.statistics
    for topic, puts in list(statistics.puts.items() if statistics.request_times is not None else ()):
        sizes = puts.sizes()
        if topic and any(sizes.counts):
            yield (topic, _message_type(scrape, topic), flag(is_system_topic(topic))), sizes


def _latencies(scrape: Scrape) -> Iterator[Row]:
    times = scrape.broker.statistics.request_times
    for key, spread in list(times.times.items() if times is not None else ()):
        yield (REMOTING, *names_of_codes(key), flag(key[2]), key[3]), spread


def _commits(scrape: Scrape) -> Iterator[Row]:
    return (((topic,), sum(ages.counts)) for topic, ages in list(scrape.broker.statistics.committed.items()))


def _topic_creations(scrape: Scrape) -> Iterator[Row]:
    times = scrape.broker.statistics.creations.topics
    return (((status, flag(system)), spread) for (status, system), spread in list(times.items()))


def _group_creations(scrape: Scrape) -> Iterator[Row]:
    return (((status,), spread) for status, spread in list(scrape.broker.statistics.creations.groups.items()))


def _message_type(scrape: Scrape, topic: str) -> str:
    config = scrape.broker.topics.get(topic)
    return ((config.attributes if config is not None else None) or {}).get("message.type", "NORMAL")


def _producers(scrape: Scrape) -> Iterable[Row]:
    count = Counter(
        (client.language.lower(), version_name(client.version).lower(), REMOTING)
        for clients in scrape.broker.producers.groups.values()
        for client in clients.values()
    )
    return list(count.items())


def _consumers(scrape: Scrape) -> Iterable[Row]:
    count = Counter(
        (
            name,
            client.language.lower(),
            version_name(client.version).lower(),
            CONSUME_MODES.get(group.consume_type or "", "unknown"),
            REMOTING,
            flag(is_system_group(name)),
        )
        for name, group in scrape.broker.consumers.groups.items()
        for client in group.clients.values()
    )
    return list(count.items())


def _of_lag(value: Callable[[Lag, int], float]) -> Callable[[Scrape], Iterator[Row]]:
    return lambda scrape: ((lag.labels(), value(lag, scrape.now_ms)) for lag in scrape.lags)


def _dead_letters(scrape: Scrape) -> Iterator[Row]:
    """Return the dead letters; the counters' keys are owner@topic@group@SEND_BACK_TO_DLQ."""
    sums: Counter[tuple[str, str]] = Counter()
    for key, counter in scrape.broker.statistics.dead_letters.items():
        parts = key.split("@")
        if len(parts) == 4:
            sums[parts[2], parts[1]] += counter.messages
    return (((group, topic, flag(is_system_group(group))), count) for (group, topic), count in sums.items())


def _reserve_time(scrape: Scrape) -> Iterator[Row]:
    earliest = int(scrape.runtime["earliestMessageTimeStamp"])
    if earliest > 0:
        yield LOCAL_DISK, scrape.now_ms - earliest


def _stored(scrape: Scrape) -> list[Row]:
    """Return the bytes in use on the whole disk, as in 5.3.3, by any program."""
    return [] if scrape.disk is None else [(LOCAL_DISK, scrape.disk.used)]


def _not_flushed(scrape: Scrape) -> list[Row]:
    return [(LOCAL_DISK, scrape.not_flushed)]


FAMILIES: tuple[Family[Scrape], ...] = (
    Family("rocketmq_processor_watermark", "gauge", "Request processor watermark", ("processor",), _waiting),
    Family("rocketmq_broker_permission", "gauge", "Broker permission", (), lambda s: one(s.broker.options.broker_permission)),
    Family("rocketmq_topic_number", "gauge", "Active topic number", (), lambda s: one(len(s.broker.topics.topics))),
    Family(
        "rocketmq_consumer_group_number", "gauge", "Active subscription group number", (),
        lambda s: one(len(s.broker.groups.groups)),
    ),
    Family("rocketmq_messages_in_total", "counter", "Incoming messages", OF_TOPIC, _puts("messages")),
    Family("rocketmq_throughput_in_total", "counter", "Bytes of incoming messages", OF_TOPIC, _puts("bytes")),
    Family("rocketmq_messages_out_total", "counter", "Outgoing messages", OF_READS, _gets("messages")),
    Family("rocketmq_throughput_out_total", "counter", "Bytes of outgoing messages", OF_READS, _gets("bytes")),
    Family("rocketmq_message_size", "histogram", "Bytes of the records of sends", OF_TOPIC, _sizes),
    Family(
        "rocketmq_rpc_latency", "histogram", "Time of requests, in ms",
        ("protocol_type", "request_code", "response_code", "is_long_polling", "result"), _latencies, "milliseconds",
    ),
    Family(
        "rocketmq_producer_connections", "gauge", "Producer connections",
        ("language", "version", "protocol_type"), _producers,
    ),
    Family(
        "rocketmq_consumer_connections", "gauge", "Consumer connections",
        ("consumer_group", "language", "version", "consume_mode", "protocol_type", "is_system"), _consumers,
    ),
    Family("rocketmq_consumer_lag_messages", "gauge", "Consumer lag messages", OF_LAG, _of_lag(lambda lag, _: lag.lag)),
    Family(
        "rocketmq_consumer_lag_latency", "gauge", "Consumer lag time in ms", OF_LAG,
        _of_lag(lambda lag, now: age(lag.oldest_unread_ms, now)), "milliseconds",
    ),
    Family(
        "rocketmq_consumer_inflight_messages", "gauge", "Messages delivered and not committed", OF_LAG,
        _of_lag(lambda lag, _: lag.in_flight),
    ),
    Family(
        "rocketmq_consumer_queueing_latency", "gauge", "Time that the oldest message waits for delivery, in ms", OF_LAG,
        _of_lag(lambda lag, now: age(lag.oldest_not_pulled_ms, now)), "milliseconds",
    ),
    Family(
        "rocketmq_consumer_ready_messages", "gauge", "Messages not delivered yet", OF_LAG, _of_lag(lambda lag, _: lag.ready)
    ),
    Family(
        "rocketmq_send_to_dlq_messages_total", "counter", "Messages that a group gave up on",
        ("consumer_group", "topic", "is_system"), _dead_letters,
    ),
    Family(
        "rocketmq_half_messages", "gauge", "Half messages without commit or rollback", ("topic",),
        lambda s: (((topic,), metric.count) for topic, metric in list(s.broker.tables.transaction_metrics.counts.items())),
    ),
    Family("rocketmq_commit_messages_total", "counter", "Transactions that were committed", ("topic",), _commits),
    Family(
        "rocketmq_rollback_messages_total", "counter", "Transactions that were rolled back", ("topic",),
        lambda s: (((topic,), count) for topic, count in list(s.broker.statistics.rolled_back.items())),
    ),
    Family(
        "rocketmq_finish_message_latency", "histogram", "From a half message's birth to its commit, in s", ("topic",),
        lambda s: (((topic,), ages) for topic, ages in list(s.broker.statistics.committed.items())), "milliseconds",
    ),
    Family(
        "rocketmq_topic_create_execution_time", "histogram", "Time of requests that create or change topics, in ms",
        ("invocation_status", "is_system"), _topic_creations, "milliseconds",
    ),
    Family(
        "rocketmq_consumer_group_create_execution_time", "histogram", "Time of requests that create or change groups, in ms",
        ("invocation_status",), _group_creations, "milliseconds",
    ),
    Family("rocketmq_storage_size", "gauge", "Used bytes of the disk of the store", STORAGE, _stored, "bytes"),
    Family("rocketmq_storage_flush_behind_bytes", "gauge", "Bytes that are not on disk yet", STORAGE, _not_flushed, "bytes"),
    Family(
        "rocketmq_storage_dispatch_behind_bytes", "gauge", "Bytes not in queues yet", STORAGE,
        lambda s: [(LOCAL_DISK, 0)], "bytes",
    ),
    Family(
        "rocketmq_storage_message_reserve_time", "gauge", "Age of the oldest message in ms", STORAGE, _reserve_time,
        "milliseconds",
    ),
)  # fmt: skip
