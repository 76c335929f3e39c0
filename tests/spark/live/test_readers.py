"""The batch and the stream reader without Spark, against a broker."""

from __future__ import annotations

import json
from collections.abc import Iterable

import attrs
import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows

from tests.spark.live.brokers import Broker
from twisted_mq.protocol.bodies import MessageQueue
from twisted_mq.protocol.messages.message import Message
from twisted_mq.spark.errors import WrongOption
from twisted_mq.spark.live import stream_reader
from twisted_mq.spark.live.batch_reader import LiveBatchReader
from twisted_mq.spark.live.errors import BrokerSilent, OffsetsLost, QueueChanged, RequestRefused, TopicUnknown
from twisted_mq.spark.live.offset_maps import OffsetMap, flat, nested
from twisted_mq.spark.live.options import live_options
from twisted_mq.spark.live.pulling import Stretch
from twisted_mq.spark.live.queue_marks import as_tree, parse_marks
from twisted_mq.spark.live.queue_offsets import commit_offsets, group_offsets
from twisted_mq.spark.live.stream_reader import LiveStreamReader
from twisted_mq.spark.live.tasks import LiveSplit

COLUMNS = ["queueId", "queueOffset", "body"]


def batch(broker: Broker, columns: list[str] = COLUMNS, **options: object) -> LiveBatchReader:
    given = {"nameServer": broker.name_server, **{name: str(value) for name, value in options.items()}}
    return LiveBatchReader(live_options(given), columns)


def stream(broker: Broker, **options: object) -> LiveStreamReader:
    given = {"nameServer": broker.name_server, **{name: str(value) for name, value in options.items()}}
    return LiveStreamReader(live_options(given), COLUMNS)


def rows(reader: LiveBatchReader | LiveStreamReader, splits: Iterable[LiveSplit]) -> list[tuple[object, ...]]:
    batches = [found for split in splits for found in reader.read(split)]
    return [tuple(row.values()) for found in batches for row in found.to_pylist()]


def bodies(reader: LiveBatchReader) -> list[bytes]:
    return sorted(row[-1] for row in rows(reader, reader.partitions()))  # type: ignore[type-var]


def numbered(count: int, begin: int = 0) -> list[bytes]:
    return [b"%06d" % number for number in range(begin, begin + count)]


def offsets(topic: str, *numbers: int) -> OffsetMap:
    return {topic: {"broker-a": {str(queue): number for queue, number in enumerate(numbers)}}}


def nexts(tree: OffsetMap) -> OffsetMap:
    """An offset without its fingerprints."""
    return nested(flat(tree))


def test_all_queues_of_several_topics(broker: Broker) -> None:
    first, second = broker.topic(2), broker.topic(1)
    broker.send(first, numbered(3), 0)
    broker.send(first, numbered(2, 10), 1)
    broker.send(second, numbered(1, 20))
    reader = batch(broker, ["topic", "brokerName", *COLUMNS], subscribe=f"{first}, {second}")
    found = rows(reader, reader.partitions())
    assert found == [
        *((first, "broker-a", 0, number, b"%06d" % number) for number in range(3)),
        *((first, "broker-a", 1, number, b"%06d" % (10 + number)) for number in range(2)),
        (second, "broker-a", 0, 0, b"000020"),
    ]


def test_all_columns_are_those_of_a_store(broker: Broker) -> None:
    topic = broker.topic(1)
    properties = {"TAGS": "new", "KEYS": "k1 k2", "UNIQ_KEY": "id", "colour": "grün", "WAIT": "true"}
    broker.send(topic, [Message(topic, b"body", properties=dict(properties))])
    reader = batch(
        broker, list(live_options({"nameServer": "n:1", "topic": "T", "columns": "all"}).columns), topic=topic
    )
    (found,) = [row for split in reader.partitions() for one in reader.read(split) for row in one.to_pylist()]
    (stored,) = broker.read(topic)[0]
    assert dict(found.pop("properties")) == stored.properties
    assert found.pop("bornTimestamp").timestamp() * 1000 == stored.born_timestamp
    assert round(found.pop("storeTimestamp").timestamp() * 1000) == stored.store_timestamp
    assert found == {
        "topic": topic, "queueId": 0, "queueOffset": 0, "physicalOffset": stored.physical_offset, "file": None, "store": None,
        "brokerName": "broker-a", "tags": "new", "keys": "k1 k2", "uniqKey": "id", "flag": 0, "sysFlag": 0,
        "bornHost": stored.born_host, "storeHost": stored.store_host, "reconsumeTimes": 0, "preparedTransactionOffset": 0,
        "storeSize": stored.store_size, "bodyCRC": stored.body_crc, "crcOk": True, "body": b"body",
    }  # fmt: skip


def test_a_long_queue_in_many_parts(broker: Broker) -> None:
    topic = broker.topic(1)
    broker.send(topic, numbered(5000))
    reader = batch(broker, topic=topic, minPartitions=7)
    splits = reader.partitions()
    assert len(splits) == 7
    assert rows(reader, splits) == [(0, number, b"%06d" % number) for number in range(5000)]


def test_the_broker_selects_by_tags_and_by_sql(broker: Broker) -> None:
    topic = broker.topic(1)
    colours = ("red", "blue", "AaAa", "BBBB")  # the hashes of the last two are equal
    messages = [
        Message(topic, b"%04d" % number, properties={"TAGS": colours[number % 4], "size": str(number % 10)})
        for number in range(3000)
    ]
    broker.send(topic, messages)
    by_tag = {
        colour: [b"%04d" % number for number in range(3000) if colours[number % 4] == colour] for colour in colours
    }
    assert bodies(batch(broker, topic=topic, tags="AaAa")) == by_tag["AaAa"]
    assert bodies(batch(broker, topic=topic, tags="blue || red")) == sorted(by_tag["blue"] + by_tag["red"])
    assert bodies(batch(broker, topic=topic, sql="size > 8")) == [b"%04d" % n for n in range(3000) if n % 10 == 9]
    with pytest.raises(RequestRefused, match=r"a pull of queue 0 of .* asked from .* code 23"):
        bodies(batch(broker, topic=topic, sql="size >"))


def test_bounds(broker: Broker) -> None:
    topic = broker.topic(2)
    broker.send(topic, numbered(4), 0)
    broker.send(topic, numbered(4, 10), 1)
    start, end = json.dumps(offsets(topic, 1, -1)), json.dumps(offsets(topic, 3))
    assert bodies(batch(broker, topic=topic, startingOffsets=start)) == numbered(3, 1)
    assert bodies(batch(broker, topic=topic, endingOffsets=end)) == numbered(3) + numbered(4, 10)
    assert bodies(batch(broker, topic=topic, startingOffsets="latest")) == []
    assert bodies(batch(broker, topic=topic, startingTimestamp="2020-01-01", endingTimestamp=1 << 50)) == bodies(
        batch(broker, topic=topic)
    )
    assert bodies(batch(broker, topic=topic, endingTimestamp="2020-01-01")) == []


def test_a_groups_offsets_are_where_it_goes_on(broker: Broker) -> None:
    topic = broker.topic(2)
    broker.send(topic, numbered(4), 0)
    broker.send(topic, numbered(4, 10), 1)
    commit_offsets(broker.cluster(), "Readers2", {MessageQueue(topic, "broker-a", 0): 3})
    reader = batch(broker, topic=topic, group="Readers2", startingOffsets="group")
    assert bodies(reader) == [b"000003", *numbered(4, 10)]


@pytest.mark.parametrize(
    ("start", "error", "reason"),
    [
        ({"T": {"broker-a": {"0": 5}}}, WrongOption, "there is no queue 0 of T at broker-a; of T there are none"),
        ({"topic": {"broker-a": {"7": 5}}}, WrongOption, "there is no queue 7 of .*there are broker-a 0"),
        ({"topic": {"broker-x": {"0": 5}}}, WrongOption, "at broker-x; of "),
        ({"topic": {"broker-a": {"0": 5}}}, WrongOption, "queue 0 of .* at broker-a ends at 4"),
    ],
)
def test_offsets_that_there_are_not(broker: Broker, start: OffsetMap, error: type[Exception], reason: str) -> None:
    topic = broker.topic(1)
    broker.send(topic, numbered(4), 0)
    text = json.dumps(start).replace("topic", topic)
    with pytest.raises(error, match=reason):
        batch(broker, topic=topic, startingOffsets=text).partitions()


def test_a_batch_of_an_unknown_topic_fails(broker: Broker) -> None:
    with pytest.raises(TopicUnknown, match=r"topic 'Nowhere' does not exist at"):
        batch(broker, topic="Nowhere").partitions()
    assert batch(broker, subscribePattern="Nowhere.*").partitions() == []


def test_a_queue_of_a_broker_that_is_gone_names_it_and_the_machine(broker: Broker) -> None:
    topic = broker.topic(1)
    reader = batch(broker, topic=topic, tries=1)
    with pytest.raises(BrokerSilent, match="broker broker-x is not reached from "):
        rows(reader, [LiveSplit(Stretch(MessageQueue(topic, "broker-x", 0), 0, 3))])


# streams


def test_a_stream_goes_on_where_its_offset_says(broker: Broker) -> None:
    topic = broker.topic(2)
    broker.send(topic, numbered(3), 0)
    reader = stream(broker, topic=topic)
    start = reader.initialOffset()
    assert nexts(start) == offsets(topic, 3, 0)
    broker.send(topic, numbered(2, 10), 1)
    end = reader.latestOffset(start, ReadAllAvailable())
    assert nexts(end) == offsets(topic, 3, 2)
    assert rows(reader, reader.partitions(start, end)) == [(1, 0, b"000010"), (1, 1, b"000011")]
    assert reader.partitions(end, end) == []
    assert reader.reportLatestOffset() == nexts(end)
    reader.stop()


def test_a_topic_that_comes_later_is_read_from_its_first_message(broker: Broker) -> None:
    reader = stream(broker, subscribePattern="Later.*")
    start = reader.initialOffset()
    assert start == {}
    topic = broker.topic(2, "LaterOnes")
    broker.send(topic, numbered(3), 1)
    known = reader.latestOffset(start, ReadAllAvailable())
    assert (known, reader.partitions(start, known)) == (offsets(topic, 0, 0), [])
    end = reader.latestOffset(known, ReadAllAvailable())
    assert rows(reader, reader.partitions(known, end)) == [(1, number, b"%06d" % number) for number in range(3)]
    reader.stop()


def test_limits_cut_a_batch(broker: Broker) -> None:
    topic = broker.topic(2)
    broker.send(topic, numbered(100), 0)
    broker.send(topic, numbered(300), 1)
    reader = stream(broker, topic=topic, startingOffsets="earliest", maxOffsetsPerTrigger=40)
    limit = reader.getDefaultReadLimit()
    assert limit == ReadMaxRows(40)
    start = reader.initialOffset()
    assert nexts(reader.latestOffset(start, limit)) == offsets(topic, 10, 30)
    assert nexts(reader.latestOffset(start, ReadAllAvailable())) == offsets(topic, 100, 300)
    (one,) = broker.read(topic)[0][:1]
    small = stream(broker, topic=topic, startingOffsets="earliest", maxBytesPerTrigger=one.store_size * 80)
    assert nexts(small.latestOffset(start, small.getDefaultReadLimit())) == offsets(topic, 20, 60)
    reader.stop()
    small.stop()


def test_a_batch_waits_for_enough_messages_but_not_for_ever(broker: Broker) -> None:
    topic = broker.topic(1)
    broker.send(topic, numbered(2))
    reader = stream(broker, topic=topic, startingOffsets="earliest", minOffsetsPerTrigger=10, maxTriggerDelay="30s")
    seconds = 0.0
    reader.cluster.now = lambda: seconds
    first = reader.latestOffset(reader.initialOffset(), ReadAllAvailable())
    assert nexts(first) == offsets(topic, 2)  # the first one waits for none
    broker.send(topic, numbered(9))
    seconds = 29.0
    assert reader.latestOffset(first, ReadAllAvailable()) == first
    broker.send(topic, numbered(1))
    second = reader.latestOffset(first, ReadAllAvailable())
    assert nexts(second) == offsets(topic, 12)
    broker.send(topic, numbered(3))
    assert reader.latestOffset(second, ReadAllAvailable()) == second
    seconds = 59.0
    assert nexts(reader.latestOffset(second, ReadAllAvailable())) == offsets(topic, 15)
    reader.prepareForTriggerAvailableNow()
    broker.send(topic, numbered(1))
    reader.prepareForTriggerAvailableNow()
    assert nexts(reader.latestOffset(offsets(topic, 15), ReadAllAvailable())) == offsets(topic, 16)
    reader.stop()


def test_times_by_queue(broker: Broker) -> None:
    topic = broker.topic(2)
    for queue in range(2):
        broker.send(topic, numbered(4, 10 * queue), queue)
    stored = [[message.store_timestamp for message in queue] for queue in broker.read(topic)]
    times = json.dumps(offsets(topic, 0, stored[1][-1] + 60_000))
    assert bodies(batch(broker, topic=topic, startingOffsetsByTimestamp=times)) == numbered(4)
    with pytest.raises(WrongOption, match=r"startingOffsetsByTimestamp=.*queue 1 of .* has no message from then on"):
        batch(
            broker, topic=topic, startingOffsetsByTimestamp=times, startingOffsetsByTimestampStrategy="error"
        ).partitions()
    assert bodies(batch(broker, topic=topic, endingOffsetsByTimestamp=json.dumps(offsets(topic, 1)))) == numbered(4, 10)


def test_a_task_reads_so_many_messages_at_most(broker: Broker) -> None:
    topic = broker.topic(2)
    broker.send(topic, numbered(10), 0)
    broker.send(topic, numbered(25, 10), 1)
    reader = batch(broker, topic=topic, maxRecordsPerPartition=10)
    assert [one.stretch.end - one.stretch.start for one in reader.partitions()] == [10, 8, 8, 9]
    assert bodies(reader) == numbered(35)


def test_what_comes_after_available_now_was_asked_for_is_not_read(broker: Broker) -> None:
    topic = broker.topic(1)
    broker.send(topic, numbered(5))
    reader = stream(broker, topic=topic, startingOffsets="earliest", maxOffsetsPerTrigger=3)
    start = reader.initialOffset()
    reader.prepareForTriggerAvailableNow()
    broker.send(topic, numbered(5, 10))
    limit = reader.getDefaultReadLimit()
    first = reader.latestOffset(start, limit)
    second = reader.latestOffset(first, limit)
    third = reader.latestOffset(second, limit)
    assert [nexts(one) for one in (first, second)] == [offsets(topic, 3), offsets(topic, 5)]
    assert third == second
    reader.stop()


@pytest.mark.parametrize("commit", [True, False])
def test_committed_is_the_last_read_plus_one(broker: Broker, commit: bool) -> None:
    topic = broker.topic(1)
    broker.send(topic, numbered(5))
    reader = stream(broker, topic=topic, group=f"Committers{commit}", commitOffsets=str(commit).lower())
    reader.commit(offsets(topic, 3))
    reader.latestOffset(offsets(topic, 5), ReadAllAvailable())
    reader.stop()
    queue = MessageQueue(topic, "broker-a", 0)
    assert group_offsets(broker.cluster(), [queue], f"Committers{commit}") == ({queue: 5} if commit else {})


def test_a_queue_that_ends_before_what_was_read_of_it(broker: Broker) -> None:
    topic = broker.topic(1)
    broker.send(topic, numbered(5))
    with pytest.raises(OffsetsLost, match=r"offset 9 was requested, .* 5: the queue ends before"):
        stream(broker, topic=topic).latestOffset(offsets(topic, 9), ReadAllAvailable())
    lenient = stream(broker, topic=topic, failOnDataLoss="false")
    assert lenient.latestOffset(offsets(topic, 9), ReadAllAvailable()) == offsets(topic, 0)
    lenient.stop()


def replaced(tree: OffsetMap, **changes: int) -> OffsetMap:
    """The offset of a reader of another store: each last message has another fingerprint."""
    return as_tree(
        {
            queue: attrs.evolve(mark, last=mark.last and attrs.evolve(mark.last, **changes))
            for queue, mark in parse_marks(tree).items()
        }
    )


def test_an_offset_has_the_fingerprint_of_the_last_message(broker: Broker) -> None:
    topic = broker.topic(2)
    broker.send(topic, numbered(3), 1)
    reader = stream(broker, topic=topic)
    last = broker.read(topic)[1][-1]
    print_ = [last.physical_offset, last.store_size, last.body_crc, last.store_timestamp]
    assert reader.initialOffset() == {topic: {"broker-a": {"0": 0, "1": {"next": 3, "last": print_}}}}
    assert bodies(batch(broker, topic=topic, startingOffsets=json.dumps(reader.initialOffset()))) == []
    reader.stop()


@pytest.mark.parametrize("change", [{"offset": 1}, {"size": 1}, {"crc": 1}, {"stored": 1}], ids=str)
def test_a_broker_with_another_store_is_found(broker: Broker, change: dict[str, int]) -> None:
    topic = broker.topic(1)
    broker.send(topic, numbered(5))
    start = replaced(stream(broker, topic=topic).initialOffset(), **change)
    reader = stream(broker, topic=topic)
    assert reader.latestOffset(start, ReadAllAvailable()) == start  # nothing new to read
    broker.send(topic, numbered(2, 10))
    with pytest.raises(QueueChanged, match=r"queue 0 of .* at broker-a: the message at offset 4 is not the one"):
        reader.latestOffset(start, ReadAllAvailable())
    with pytest.raises(QueueChanged, match="offset 4"):
        reader.partitions(start, offsets(topic, 7))  # planned by another process
    lenient = stream(broker, topic=topic, failOnDataLoss="false")
    anew = lenient.latestOffset(start, ReadAllAvailable())
    assert anew == offsets(topic, 0)
    end = lenient.latestOffset(anew, ReadAllAvailable())
    assert rows(lenient, lenient.partitions(anew, end)) == [
        (0, number, body) for number, body in enumerate(numbered(5) + numbered(2, 10))
    ]
    for one in (reader, lenient):
        one.stop()


def test_lost_messages_are_counted_in_the_offset(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    topic = broker.topic(1)
    broker.send(topic, numbered(9))
    first = {MessageQueue(topic, "broker-a", 0): 4}
    monkeypatch.setattr(
        stream_reader, "first_of_both", lambda cluster, queues, held: {one: first[one] for one in queues}
    )
    strict, lenient = stream(broker, topic=topic), stream(broker, topic=topic, failOnDataLoss="false")
    with pytest.raises(OffsetsLost, match=r"offset 1 was requested, the first one is 4: deleted before it was read"):
        strict.latestOffset(offsets(topic, 1), ReadAllAvailable())
    end = lenient.latestOffset(offsets(topic, 1), ReadAllAvailable())
    assert [mark.lost for mark in parse_marks(end).values()] == [3]
    broker.send(topic, numbered(1))
    following = lenient.latestOffset(end, ReadAllAvailable())
    assert [(mark.next, mark.lost) for mark in parse_marks(following).values()] == [(10, 3)]
    for one in (strict, lenient):
        one.stop()
