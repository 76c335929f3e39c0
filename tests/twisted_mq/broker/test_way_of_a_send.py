"""Files that a plain send passes from the read to the answer: few, and forward only."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from tests.support.broker import BrokerInMemory
from tests.support.store_load import small_config
from twisted_mq.broker.statistics.call_times import SAMPLE_CALLS
from twisted_mq.protocol.codes import RequestCode
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.protocol.wire.framing import encode_frame
from twisted_mq.protocol.wire.shapes import MIN_STREAK
from twisted_mq.storage.message_store import FileMessageStore

ROOT = Path(__file__).resolve().parents[3]

WAY = [
    "twisted_mq/remoting/socket_channel.py",
    "protocol/wire/framing.py",
    "twisted_mq/broker/processors/send_columns.py",
    "storage/appending/appender.py",
    "protocol/layouts/joined_records.py",
    "protocol/wire/sent_answers.py",
]
"""Sends of a header that is known, which came together: the files in the order in which they are entered first."""
VALUES = {"protocol/wire/shapes.py", "storage/interfaces.py"}
"""Classes of the values that are handed on, whose lengths are asked for."""

SINGLE_WAY = [
    "twisted_mq/remoting/socket_channel.py",
    "protocol/wire/framing.py",
    "protocol/wire/command.py",
    "twisted_mq/broker/processors/send.py",
    "protocol/wire/header_codec.py",
    "storage/appending/appender.py",
    "protocol/layouts/record_codec.py",
    "protocol/wire/answers.py",
]
"""Files of a send. protocol/text/java.py hashes tags in addition."""

MADE = {"encode": "protocol/wire/answers.py"}
"""Functions that a file makes of a header class, by their names; they have no file of their own."""

FIELDS = {
    "a": "P", "b": "T", "c": "TBW102", "d": "4", "e": "0", "f": "0", "g": "1795217217000", "h": "0", "j": "0", "k": "false",
    "m": "false", "i": "UNIQ_KEY\x01C0000202201A4E0E2F2A66E000000000\x02WAIT\x01true\x02",
}  # fmt: skip


def place(frame: FrameType | None) -> str | None:
    """The project's file that a frame is in; None for libraries, tests and what attrs makes."""
    if frame is None:
        return None
    code = frame.f_code
    if code.co_filename.startswith("<"):
        return MADE.get(code.co_name)
    path = Path(code.co_filename).resolve()
    if not path.is_relative_to(ROOT) or path.is_relative_to(ROOT / "tests") or "site-packages" in path.parts:
        return None
    return path.relative_to(ROOT).as_posix()


def calls_between_files(work: Callable[[], object]) -> list[tuple[str, str]]:
    """Caller's and called file of each call that leads from one of the project's files into another."""
    calls: list[tuple[str, str]] = []

    def noted(frame: FrameType, event: str, argument: Any) -> None:
        if event == "call":
            caller, called = place(frame.f_back), place(frame)
            if caller is not None and called is not None and caller != called:
                calls.append((caller, called))

    sys.setprofile(noted)
    try:
        work()
    finally:
        sys.setprofile(None)
    return calls


@pytest.mark.parametrize(
    ("way", "is_known"), [(WAY, True), (SINGLE_WAY, False)], ids=["several of a known header", "one"]
)
def test_a_plain_send_passes_few_files_forward_to_its_answer(tmp_path: Path, way: list[str], is_known: bool) -> None:
    room = {
        "mapped_file_size_commit_log": 1 << 20,
        "commit_log_allocation_step": 1 << 20,
        "mapped_file_size_consume_queue": 20_000,
        "consume_queue_allocation_step": 20_000,
    }
    store = FileMessageStore(small_config(tmp_path, **room), lambda: 1_795_217_217_000)
    broker = BrokerInMemory(store=store)
    if not is_known:
        broker.traffic.streaks = None
    peer = broker.connect()
    command = RemotingCommand(RequestCode.SEND_MESSAGE_V2, 7, body=b"x" * 128, language="JAVA", ext_fields=dict(FIELDS))
    read = encode_frame(command) * (MIN_STREAK if is_known else 1)
    for _ in range(SAMPLE_CALLS + 3):
        peer.channel.dataReceived(read)
    peer.received()
    written: list[bytes] = []

    def write(data: bytes) -> None:
        sys.setprofile(None)
        written.append(data)

    peer.transport.write = write  # type: ignore[method-assign]
    calls = calls_between_files(lambda: peer.channel.dataReceived(read))
    assert len(written) == 1
    calls = [call for call in calls if VALUES.isdisjoint(call)]
    assert list(dict.fromkeys([way[0], *(called for _, called in calls)])) == way
    assert len(way) <= 8
    assert [call for call in calls if way.index(call[0]) > way.index(call[1])] == []
    assert len(set(calls)) == len(way) - 1, "each file is entered from one other file"
    store.close()
