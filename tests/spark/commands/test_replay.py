"""Replayed messages keep ids, order, tags, keys and the users' properties; a replay goes on where it was."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.spark.live.brokers import Broker
from tests.spark.stores import StoreWriter
from twisted_mq.protocol.flags import MessageSysFlag
from twisted_mq.spark.commands.replay import Replay, replay
from twisted_mq.spark.commands.stores import Stores
from twisted_mq.storage.store_reader import StoreReader

MESSAGES = 60


def test_a_topic_is_sent_again(session: SparkSession, broker: Broker, writer: StoreWriter, tmp_path: Path) -> None:
    writer.file_size = 4096
    for number in range(MESSAGES):
        properties = {"TAGS": "new", "KEYS": f"k{number}", "mine": "yes", "CLUSTER": "old", "UNIQ_KEY": f"K{number}"}
        writer.append("Orders", b"%03d" % number, properties, queue_id=number % 3)
    writer.append("Orders", b"without a key", queue_id=2)
    writer.append("Orders", b"half", sys_flag=MessageSysFlag.TRANSACTION_PREPARED_TYPE)
    writer.append("Others", b"of another topic")
    store, target = writer.write(), broker.topic(2)
    wanted = Replay("Orders", target, {"nameServer": broker.name_server}, state=str(tmp_path / "state.json"))
    found = replay(Stores.opened(session, [store]), 50, wanted)
    assert [one.value for one in found.figures] == [
        MESSAGES + 1,
        len(list(Path(store, "commitlog").iterdir())),
        2,
        0,
        0,
        0,
    ]
    queues = broker.read(target)
    sources = [
        [message for queue in queues for message in queue if message.body.isdigit() and int(message.body) % 3 == source]
        for source in (0, 1)
    ]
    for source, messages in enumerate(sources):
        assert [message.body for message in messages] == [b"%03d" % number for number in range(source, MESSAGES, 3)]
        assert [message.unique_key for message in messages] == [f"K{number}" for number in range(source, MESSAGES, 3)]
        assert {(one.tags, one.properties["mine"], one.properties.get("CLUSTER") == "old") for one in messages} == {
            ("new", "yes", False)
        }
    again = replay(Stores.opened(session, [store]), 50, wanted)
    assert [one.value for one in again.figures] == [0, 0, 2, 0, 0, 0]


@pytest.mark.parametrize("topic", ["CapMany", "CapTx", "CapBatch", "CapOrder"])
def test_a_topic_of_a_recorded_store_is_sent_again(
    session: SparkSession, broker: Broker, captured: Callable[[str], str], topic: str
) -> None:
    path = captured("st")
    stored = [one for one in StoreReader(path).messages() if one.topic == topic]
    wanted = Replay(topic, broker.topic(2), {"nameServer": broker.name_server})
    found = replay(Stores.opened(session, [path]), 50, wanted)
    assert found.figures[0].value == len(stored) > 4
    queues = broker.read(wanted.target)
    ids = [[message.unique_key for message in queue] for queue in queues]
    for source in {one.queue_id for one in stored}:
        sources = [one for one in stored if one.queue_id == source]
        (queue,) = [queue for queue, keys in zip(queues, ids, strict=True) if sources[0].unique_key in keys]
        keys = {one.unique_key for one in sources}
        sent = [one for one in queue if one.unique_key in keys]
        assert [(one.unique_key, one.tags, one.keys, one.body) for one in sent] == [
            (one.unique_key, one.tags, one.keys, one.body) for one in sources
        ]
