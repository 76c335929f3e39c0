"""Sends that wait and come many at a time: answers, log and queues are those of sends one by one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.twisted_mq.broker.processors.test_send import fields
from tests.twisted_mq.broker.processors.test_send_columns import broker_of, files, taken_by
from twisted_mq.protocol.codes import ResponseCode
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.protocol.wire.framing import FrameDecoder, encode_frame

NOW_MS = 1_795_217_217_000
COUNT = 40
PREPARED = "4"


def frame(
    number: int,
    asked: str,
    *,
    topic: str = "T",
    queue: str = "0",
    sys_flag: str = "0",
    serialize_type: int = 0,
    **more: str,
) -> bytes:
    """A send with these properties behind its unique key."""
    text = f"UNIQ_KEY\x01C0A8{number:04X}\x02TAGS\x01A\x02{asked}"
    values = fields(topic, queue=queue, properties=text, sys_flag=sys_flag, **more)
    command = RemotingCommand(310, 1000 + number, 0, "JAVA", 479, None, b"hello", serialize_type, ext_fields=values)
    return encode_frame(command)


def outcome(folder: Path, reads: Sequence[bytes], *, columns: bool) -> tuple[Any, int]:
    """Answers, the store's files, what was counted; and how many sends were stored together."""
    answers = []
    with files(folder) as store:
        broker = broker_of(store, columns=columns)
        peer = broker.connect()
        for read in reads:
            peer.channel.dataReceived(read)
            answers.append(peer.transport.value())
            peer.transport.clear()
        statistics = broker.controller.statistics
        counted = {
            (topic, queue_id): (counter.times, counter.bytes, counter.more)
            for topic, puts in statistics.puts.items()
            for queue_id, counter in puts.items()
        }
        prepared = [broker.controller.transactions.metrics.count(topic) for topic in "TU"]
        taken, _ = taken_by(broker)
    written = {
        str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.parent.name.isdigit()
    }
    written |= {path.name: path.read_bytes() for path in (folder / "commitlog").iterdir()}
    return (answers, written, counted, prepared, statistics.put_messages, statistics.put_failed), taken


def both(folder: Path, frames: Sequence[bytes], a_read: int = 10) -> tuple[Any, int]:
    """Return the outcome of frames together, which equals that of each by itself, and how many were stored together."""
    reads = [b"".join(frames[start : start + a_read]) for start in range(0, len(frames), a_read)]
    together, taken = outcome(folder / "together", reads, columns=True)
    alone, none = outcome(folder / "alone", reads, columns=False)
    assert none == 0
    assert together == alone
    return together, taken


def codes(answers: Sequence[bytes]) -> set[int]:
    """The response codes of answers."""
    decoder = FrameDecoder()
    return {answer.code for read in answers for answer in decoder.receive_data(read)}  # type: ignore[union-attr]


TAKEN: dict[str, Callable[[int], str]] = {
    "a level": lambda number: "DELAY\x013\x02",
    "levels in turn": lambda number: f"DELAY\x01{1 + number % 4}\x02",
    "levels of two lengths": lambda number: f"DELAY\x01{8 + number // 7 % 4}\x02",
    "seconds": lambda number: "TIMER_DELAY_SEC\x015\x02",
    "milliseconds that differ": lambda number: f"TIMER_DELAY_MS\x01{1000 + number * 700}\x02",
    "times that differ": lambda number: f"TIMER_DELIVER_MS\x01{NOW_MS + 5000 + number}\x02",
    "transactions": lambda number: "TRAN_MSG\x01true\x02PGROUP\x01P\x02",
    "transactions of messages with a level": lambda number: "TRAN_MSG\x01TRUE\x02DELAY\x012\x02",
}
"""Properties of sends that are taken together."""


@pytest.mark.parametrize("serialize_type", [0, 1], ids=["JSON", "ROCKETMQ"])
@pytest.mark.parametrize("kind", TAKEN)
def test_sends_that_wait_are_taken_together(tmp_path: Path, kind: str, serialize_type: int) -> None:
    asked, sys_flag = TAKEN[kind], PREPARED if kind.startswith("trans") else "0"
    frames = [
        frame(
            number, asked(number), topic="TU"[number % 2], queue=str(number % 3),
            sys_flag=sys_flag, serialize_type=serialize_type,
        )
        for number in range(COUNT)
    ]  # fmt: skip
    found, taken = both(tmp_path, frames)
    assert codes(found[0]) == {0}
    assert taken >= COUNT // 2


LEFT: dict[str, tuple[str, dict[str, str]]] = {
    "a level beyond the last": ("DELAY\x0199\x02", {}),
    "level 0": ("DELAY\x010\x02", {}),
    "a level that is no number": ("DELAY\x01x\x02", {}),
    "a level and a time": ("DELAY\x011\x02TIMER_DELAY_SEC\x015\x02", {}),
    "two times": ("TIMER_DELAY_SEC\x015\x02TIMER_DELAY_MS\x019000\x02", {}),
    "a time that is no number": ("TIMER_DELAY_SEC\x01x\x02", {}),
    "a time that is over": (f"TIMER_DELIVER_MS\x01{NOW_MS}\x02", {}),
    "a time too far away": ("TIMER_DELAY_SEC\x01999999\x02", {}),
    "one that has waited": ("TIMER_DELAY_SEC\x015\x02TIMER_OUT_MS\x011\x02", {}),
    "a prepared one with a level": ("DELAY\x011\x02", {"sys_flag": PREPARED}),
    "no transaction": ("TRAN_MSG\x01false\x02", {}),
    "a transaction that came back": ("TRAN_MSG\x01true\x02DELAY\x011\x02", {"reconsume": "1"}),
    "a transaction with an id": ("TRAN_MSG\x01true\x02__transactionId__\x01X\x02", {"sys_flag": PREPARED}),
    "a queue with a leading 0": ("DELAY\x011\x02", {"queue": "01"}),
    "a property of the broker": ("DELAY\x011\x02REAL_TOPIC\x01X\x02", {}),
}
"""Sends that are looked at one by one: properties and fields."""


def known() -> list[bytes]:
    """Sends after which a broker knows the topics, and has the queues in which messages wait."""
    asked = ("", "DELAY\x011\x02", "TIMER_DELAY_SEC\x015\x02", "TRAN_MSG\x01true\x02")
    return [
        frame(900 + 20 * place + number, one, sys_flag=PREPARED if one.startswith("TRAN") else "0")
        for place, one in enumerate(asked)
        for number in range(12)
    ]


@pytest.mark.parametrize("kind", LEFT)
def test_sends_that_wait_in_another_way_are_left_to_the_processor(tmp_path: Path, kind: str) -> None:
    asked, more = LEFT[kind]
    frames = [frame(number, asked, **more) for number in range(COUNT)]  # type: ignore[arg-type]
    _, before = both(tmp_path / "before", known())
    _, taken = both(tmp_path / "all", [*known(), *frames])
    assert before >= 16
    assert taken == before


@pytest.mark.parametrize(("crowd", "are_taken"), [(1, True), (2, False)])
def test_messages_for_a_crowded_second_are_left_to_the_processor(tmp_path: Path, crowd: int, are_taken: bool) -> None:
    with files(tmp_path) as store:
        broker = broker_of(store, timer_congest_num_each_slot=1)
        peer = broker.connect()
        peer.channel.dataReceived(b"".join(known()))
        before, _ = taken_by(broker)
        broker.controller.postponement._crowd = lambda deliver_ms: crowd
        peer.channel.dataReceived(b"".join(frame(number, "TIMER_DELAY_SEC\x015\x02") for number in range(COUNT)))
        taken, left = taken_by(broker)
    assert (taken > before) is are_taken
    assert ("it waits, and not as others do" in left) is not are_taken


@pytest.mark.parametrize(
    ("option", "value", "asked", "code"),
    [
        ("reject_transaction_message", True, "TRAN_MSG\x01true\x02", ResponseCode.NO_PERMISSION),
        ("timer_wheel_enable", False, "TIMER_DELAY_SEC\x015\x02", ResponseCode.SYSTEM_ERROR),
    ],
)
def test_what_is_refused_from_now_on_is_left_to_the_processor(
    tmp_path: Path, option: str, value: bool, asked: str, code: ResponseCode
) -> None:
    sys_flag = PREPARED if asked.startswith("TRAN") else "0"
    with files(tmp_path) as store:
        broker = broker_of(store)
        peer = broker.connect()
        peer.channel.dataReceived(b"".join(known()))
        assert {answer.code for answer in peer.received()} == {0}
        before, _ = taken_by(broker)
        setattr(broker.controller.options, option, value)
        peer.channel.dataReceived(b"".join(frame(one, asked, sys_flag=sys_flag) for one in range(COUNT)))
        assert {answer.code for answer in peer.received()} == {code}
        assert taken_by(broker)[0] == before


kinds = st.sampled_from(
    [("", "0"), ("DELAY\x012\x02", "0"), ("TIMER_DELAY_SEC\x013\x02", "0"), ("TRAN_MSG\x01true\x02", PREPARED),
     ("DELAY\x0199\x02", "0"), ("WAIT\x01true\x02DELAY\x011\x02", "0"), ("TIMER_DELIVER_MS\x015\x02", "0")]
)  # fmt: skip


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(kinds, st.sampled_from("TU"), st.integers(0, 3), st.integers(1, 14)), min_size=1, max_size=7),
       st.integers(1, 40), st.integers(0, 1))  # fmt: skip
def test_what_comes_of_any_sends_that_wait_is_what_comes_of_them_one_by_one(
    tmp_path_factory: pytest.TempPathFactory, runs: Any, a_read: int, serialize_type: int
) -> None:
    sent = [(kind, topic, queue) for kind, topic, queue, times in runs for _ in range(times)]
    frames = [
        frame(number, asked, topic=topic, queue=str(queue), sys_flag=sys_flag, serialize_type=serialize_type)
        for number, ((asked, sys_flag), topic, queue) in enumerate(sent)
    ]
    both(tmp_path_factory.mktemp("brokers"), frames, a_read)


def test_sends_that_wait_are_answered_once_they_are_on_disk() -> None:
    broker = broker_of(flush_disk_type="SYNC_FLUSH", hold_flushes=True)
    peer = broker.connect()
    frames = [frame(number, "TIMER_DELAY_SEC\x015\x02") for number in range(20)]
    for read in (frames[:6], frames[6:]):
        peer.channel.dataReceived(b"".join(read))
    assert peer.received() == []
    broker.store.flush()
    answers = peer.received()
    assert [answer.code for answer in answers] == [0] * 20
    assert taken_by(broker)[0] >= 10
    assert len({answer.ext_fields["recallHandle"] for answer in answers}) == 20
