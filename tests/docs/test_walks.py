"""The walks of docs/explanation/architecture.md are those that the calls take, and the house is the one that the imports make."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from docs.generate.house import drawing, floors, rooms
from tests.docs.blocks import ROOT
from tests.spark.stores import StoreWriter
from tests.support.broker import BrokerInMemory
from tests.support.ordered_groups import Cluster
from tests.support.store_load import small_config
from tests.twisted_mq.broker.processors.test_pull import pull_fields
from tests.twisted_mq.broker.test_way_of_a_pull import ANSWERED, HELD, VISIBLE
from tests.twisted_mq.broker.test_way_of_a_send import FIELDS, SINGLE_WAY, WAY, calls_between_files
from tests.twisted_mq.client.test_way_of_a_send import CORE_BACK, CORE_OUT
from twisted_mq.broker.statistics.call_times import SAMPLE_CALLS
from twisted_mq.protocol.codes import RequestCode
from twisted_mq.protocol.messages.order_mark import OrderMark
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.protocol.wire.framing import encode_frame
from twisted_mq.spark.source.options import read_options
from twisted_mq.spark.source.store_reader import StoreReader
from twisted_mq.storage.message_store import FileMessageStore

PAGE = (ROOT / "docs" / "explanation" / "architecture.md").read_text()


def walks(title: str) -> list[list[str]]:
    """The files of each list below a heading."""
    section = re.search(rf"^### {title}\n(.*?)(?=^##)", PAGE, re.MULTILINE | re.DOTALL)
    assert section is not None
    lists = re.findall(r"(?:^\d+\. .*\n(?:   .*\n)*)+", section[1], re.MULTILINE)
    return [re.findall(r"`([\w/]+\.py)`", one) for one in lists]


def way(work: Callable[[], object]) -> list[str]:
    """The files that calls enter or leave, each once, in the order of the first call."""
    return list(dict.fromkeys(itertools.chain.from_iterable(calls_between_files(work))))


def follows(told: Sequence[str], taken: Sequence[str]) -> bool:
    """Return True if the files are in that order on the recorded way."""
    rest = iter(taken)
    return all(file in rest for file in told)


def test_a_send_is_told_file_by_file() -> None:
    """tests/twisted_mq/broker/test_way_of_a_send.py shows that both ways are taken."""
    assert walks("A send") == [SINGLE_WAY, WAY]


def test_a_send_of_the_client_is_told_file_by_file() -> None:
    """tests/twisted_mq/client/test_way_of_a_send.py shows that each face takes these ways."""
    assert walks("A send of the client") == [CORE_OUT, CORE_BACK]


def test_a_pull_that_waits_is_told_file_by_file() -> None:
    """tests/twisted_mq/broker/test_way_of_a_pull.py shows that these ways are taken."""
    assert walks("A pull that waits") == [HELD, VISIBLE, ANSWERED]


def test_a_pull(tmp_path: Path) -> None:
    store = FileMessageStore(small_config(tmp_path, mapped_file_size_commit_log=1 << 20), lambda: 1_795_217_217_000)
    peer = BrokerInMemory(store=store).connect()
    peer.channel.dataReceived(
        encode_frame(RemotingCommand(RequestCode.SEND_MESSAGE_V2, body=b"x", language="JAVA", ext_fields=dict(FIELDS)))
    )
    frame = encode_frame(RemotingCommand(RequestCode.PULL_MESSAGE, language="JAVA", ext_fields=pull_fields()))
    for _ in range(SAMPLE_CALLS + 1):
        peer.channel.dataReceived(frame)
    (told,) = walks("A pull")
    assert follows(told, way(lambda: peer.channel.dataReceived(frame)))
    store.close()


def test_an_ordered_send() -> None:
    cluster = Cluster("a", "b")
    cluster.until(lambda: sorted(cluster.lists().send) == ["a", "b"])
    head, term = cluster.lists().head or "", cluster.leader()
    cluster.until_taken(head)
    client = cluster.client(f"{head}-0")
    assert client.sent(b"1", OrderMark(1, 0, term, 1, 1)).code == 0
    mark = OrderMark(1, 0, term, 1, 2).encode()
    fields = FIELDS | {"i": f"UNIQ_KEY\x012\x02ORDERED\x01{mark}\x02"}
    frame = encode_frame(RemotingCommand(RequestCode.SEND_MESSAGE_V2, body=b"2", language="JAVA", ext_fields=fields))
    sent, acknowledged = walks("An ordered send")
    assert follows(sent, way(lambda: client.peer.channel.dataReceived(frame)))
    assert follows(acknowledged, way(lambda: cluster.run(0.05)))
    assert [answer.code for answer in client.peer.received()] == [0]


def test_a_read_by_spark(writer: StoreWriter) -> None:
    for _ in range(50):
        writer.append()
    writer.write()
    reader = StoreReader(read_options({"path": str(writer.root)}), ["topic", "body", "queueOffset"])
    (split,) = reader.partitions()
    assert sum(batch.num_rows for batch in reader.read(split)) == 50
    planned, read = walks("A read by Spark")
    assert follows(planned, way(reader.partitions))
    assert follows(read, way(lambda: list(reader.read(split))))


@pytest.fixture
def writer(tmp_path: Path) -> StoreWriter:
    return StoreWriter(tmp_path)


@pytest.mark.parametrize(("told", "holds"), [("ab", True), ("ac", True), ("ba", False), ("ad", False)])
def test_order_and_presence_are_asked_for(told: str, holds: bool) -> None:
    assert follows(told, "abc") is holds


def test_each_floor_imports_from_those_below() -> None:
    storeys, below = floors(), rooms()
    assert storeys[:2] == [["protocol"], ["storage"]]
    lower: set[str] = set()
    for floor in storeys:
        assert all(below[room] <= lower for room in floor)
        lower.update(floor)
    assert lower == set(below)


def test_every_room_is_drawn() -> None:
    shown = re.findall(r">(\w+)</text>", drawing())
    assert sorted(shown) == sorted(rooms())
