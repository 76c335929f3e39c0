"""Files that a pull passes which has to wait, and those that a send passes which ends its wait."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import attrs
import pytest

from tests.support.broker import BrokerInMemory, Peer
from tests.support.store_load import small_config
from tests.twisted_mq.broker.processors.test_pull import SUBSCRIPTION, SUSPEND, pull_fields
from tests.twisted_mq.broker.test_way_of_a_send import FIELDS, SINGLE_WAY, calls_between_files
from twisted_mq.broker.statistics.call_times import SAMPLE_CALLS
from twisted_mq.broker.waiting_requests import WaitingKind
from twisted_mq.protocol.codes import RequestCode
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.protocol.wire.framing import encode_frame
from twisted_mq.storage.config import FlushDiskType
from twisted_mq.storage.message_store import FileMessageStore

HELD = [
    "twisted_mq/remoting/socket_channel.py",
    "protocol/wire/framing.py",
    "protocol/wire/command.py",
    "twisted_mq/broker/processors/pull.py",
    "protocol/wire/header_codec.py",
    "twisted_mq/broker/processors/pull_checks.py",
    "storage/message_store.py",
    "storage/queues/queue_reader.py",
    "twisted_mq/broker/long_polling.py",
    "twisted_mq/remoting/shares.py",
    "twisted_mq/remoting/budget.py",
    "twisted_mq/broker/controller.py",
]
"""A pull of all messages that finds none and may wait: the files in the order in which they are entered first."""
MOST = 12

VISIBLE = [
    "twisted_mq/broker/controller.py",
    "storage/message_store.py",
    "storage/appending/dispatch.py",
    "storage/queues/consume_queue.py",
    "twisted_mq/broker/long_polling.py",
    "storage/index/index_builder.py",
]
"""The files after those of the send: its message becomes visible, which wakes the pull."""
ANSWERED = [
    "twisted_mq/remoting/shares.py",
    "twisted_mq/broker/processors/pull.py",
    "storage/queues/queue_reader.py",
    "storage/files/mapped_file_queue.py",
    "storage/files/mapped_file.py",
    "storage/queues/entry_columns.py",
    "storage/log/commit_log.py",
    "twisted_mq/broker/statistics/broker_statistics.py",
    "twisted_mq/broker/statistics/counters.py",
    "twisted_mq/broker/clients/consumer_offset_manager.py",
    "twisted_mq/remoting/budget.py",
    "twisted_mq/remoting/late_answers.py",
]
"""The pull reads again and is answered."""
RETURNS = [
    ("twisted_mq/broker/processors/pull.py", "storage/message_store.py"),
    ("storage/queues/queue_reader.py", "storage/queues/consume_queue.py"),
    ("twisted_mq/broker/processors/pull.py", "protocol/wire/answers.py"),
    ("twisted_mq/remoting/late_answers.py", "twisted_mq/remoting/socket_channel.py"),
]
"""Files of the send's part that the pull's part enters again: it reads what was put, and writes to another connection."""

Calls = list[tuple[str, str]]


def files(calls: Calls) -> list[str]:
    """The files in the order in which they are entered first."""
    return list(dict.fromkeys([HELD[0], *(called for _, called in calls)]))


def returns(calls: Calls) -> Calls:
    """The calls into a file that was entered before the calling file."""
    order = files(calls)
    return [(caller, called) for caller, called in calls if order.index(caller) > order.index(called)]


@attrs.define
class Traffic:
    """A sender and a puller of one queue, which have sent and pulled so often that nothing is new or timed any more."""

    broker: BrokerInMemory
    sender: Peer
    puller: Peer
    offset: int = 0

    def sends(self) -> Callable[[], None]:
        command = RemotingCommand(
            RequestCode.SEND_MESSAGE_V2, 7, body=b"x" * 128, language="JAVA", ext_fields=dict(FIELDS)
        )
        return self._reads(self.sender, command)

    def pulls(self, **more: str) -> Callable[[], None]:
        fields = pull_fields(self.offset, SUBSCRIPTION | SUSPEND, **more)
        return self._reads(
            self.puller, RemotingCommand(RequestCode.PULL_MESSAGE, 9, language="JAVA", ext_fields=fields)
        )

    def _reads(self, peer: Peer, command: RemotingCommand) -> Callable[[], None]:
        frame = encode_frame(command)
        return lambda: peer.channel.dataReceived(frame)

    def count(self) -> int:
        return self.broker.controller.polling.count(WaitingKind.PULL)


@pytest.fixture
def traffic(tmp_path: Path) -> Iterator[Traffic]:
    room = {
        "mapped_file_size_commit_log": 1 << 20,
        "commit_log_allocation_step": 1 << 20,
        "mapped_file_size_consume_queue": 20_000,
        "consume_queue_allocation_step": 20_000,
        "flush_disk_type": FlushDiskType.ASYNC_FLUSH,
    }
    store = FileMessageStore(small_config(tmp_path, **room), lambda: 1_795_217_217_000)
    broker = BrokerInMemory(store=store)
    made = Traffic(broker, broker.connect(), broker.connect(52175))
    made.sends()()
    for _ in range(SAMPLE_CALLS + 3):
        made.offset += 1
        made.pulls()()
        made.sends()()
    assert len(made.puller.received()) == SAMPLE_CALLS + 3
    made.offset += 1
    yield made
    store.close()


def test_a_pull_that_waits_passes_twelve_files_forward(traffic: Traffic) -> None:
    calls = calls_between_files(traffic.pulls())
    assert traffic.count() == 1
    assert (files(calls), returns(calls)) == (HELD, [])
    assert len(HELD) <= MOST


def test_the_send_that_wakes_it_passes_those_of_a_send_and_of_an_answer(traffic: Traffic) -> None:
    traffic.pulls()()
    calls = calls_between_files(traffic.sends())
    (answer,) = traffic.puller.received()
    assert (answer.code, answer.remark, traffic.count()) == (0, "FOUND", 0)
    assert (files(calls), returns(calls)) == ([*SINGLE_WAY, *VISIBLE, *ANSWERED], RETURNS)


def test_a_pull_by_tags_passes_what_makes_their_selection(traffic: Traffic) -> None:
    calls = calls_between_files(traffic.pulls(subscription="paid || sent"))
    assert traffic.count() == 1
    assert [file for file in files(calls) if file not in HELD] == [
        "twisted_mq/broker/filter/selection.py",
        "protocol/messages/subscription.py",
        "protocol/text/java.py",
    ]
