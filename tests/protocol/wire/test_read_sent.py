"""Answers to sends that are read by columns say what each says when it is read by itself."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twisted_mq.client.producing.send_result import read_together, results, send_result
from twisted_mq.protocol.bodies import MessageQueue
from twisted_mq.protocol.wire.command import RESPONSE_FLAG, RemotingCommand
from twisted_mq.protocol.wire.framing import FrameDecoder, encode_frame
from twisted_mq.protocol.wire.sent_answers import SENT_ANSWERS, read_sent
from twisted_mq.protocol.wire.shapes import MIN_STREAK, Shapes, Streak

QUEUE = MessageQueue("T", "broker-a", 1)
MANY = 2 + MIN_STREAK


def answer(number: int = 1, code: int = 0, serialize_type: int = 0, **fields: str) -> bytes:
    given = {"MSG_REGION": "R", "TRACE_ON": "true", "msgId": f"AB{number:04X}", "queueId": str(number % 3),
             "queueOffset": str(1000 + number), "transactionId": f"C0{number:04X}", **fields}  # fmt: skip
    given = {name: value for name, value in given.items() if value != "-"}
    return encode_frame(
        RemotingCommand(code, 1000 + number, RESPONSE_FLAG, "JAVA", 479, None, b"", serialize_type, ext_fields=given)
    )


def streaks(data: bytes) -> list[Streak]:
    """The streaks of a read after two answers of the same shape."""
    return [one for one in FrameDecoder(shapes=Shapes(SENT_ANSWERS)).receive(data) if isinstance(one, Streak)]


fields = st.fixed_dictionaries(
    {},
    optional={
        "TRACE_ON": st.sampled_from(["true", "false", "-"]),
        "MSG_REGION": st.sampled_from(["R", "", "-"]),
        "transactionId": st.sampled_from(["-", "X", "é", '"']),
        "msgId": st.sampled_from(["AB", "A\\B"]),
        "queueId": st.sampled_from(["0", "1", "00", "4294967296"]),
        "recallHandle": st.sampled_from(["H", "I"]),
        "batchUniqId": st.just("B"),
    },
)


@given(fields, st.lists(st.integers(0, 20), min_size=MANY, max_size=20), st.integers(0, 1))
def test_any_answers_of_one_shape(given: dict[str, Any], numbers: list[int], serialize_type: int) -> None:
    for streak in streaks(b"".join(answer(number, serialize_type=serialize_type, **given) for number in numbers)):
        read = read_together(streak)
        if read is None:
            continue
        keys = [f"K{index}" for index in range(len(streak))]
        plainly = [send_result(key, QUEUE, streak.plain(index)) for index, key in enumerate(keys)]
        assert results(read, keys, [QUEUE] * len(keys)) == plainly


def test_plain_answers_are_read_together() -> None:
    (streak,) = streaks(b"".join(answer(number) for number in range(MANY)))
    assert read_sent(streak) == [
        (f"AB{number:04X}", number % 3, 1000 + number, f"C0{number:04X}") for number in range(2, MANY)
    ]


@pytest.mark.parametrize(
    ("code", "fields", "expected"),
    [
        (0, {}, 1),
        (0, {"transactionId": "-"}, 1),
        (10, {}, 0),
        (0, {"msgId": "-"}, 0),
        (0, {"queueOffset": "-"}, 0),
        (0, {"queueId": "x"}, 0),
        (0, {"queueId": "2147483647"}, 1),
        (0, {"queueId": "2147483648"}, 0),
        (0, {"batchUniqId": "B"}, 0),
    ],
)
def test_only_answers_that_say_it_all_are_read_together(code: int, fields: dict[str, Any], expected: int) -> None:
    found = streaks(b"".join(answer(number, code, **fields) for number in range(MANY)))
    assert sum(read_together(streak) is not None for streak in found) == expected


@pytest.mark.parametrize(
    ("usual", "odd"), [(b'"1005"', b'"1x05"'), (b"AB0005", rb"AB\\05"), (b'"queueId":"2"', b'"queueId":"-"')]
)
def test_an_odd_value_leaves_its_streak_to_be_read_one_by_one(usual: bytes, odd: bytes) -> None:
    frames = [answer(number) for number in range(MANY)]
    assert usual in frames[-1]
    (streak,) = streaks(b"".join([*frames[:-1], frames[-1].replace(usual, odd)]))
    assert (len(streak), read_together(streak)) == (MIN_STREAK, None)


def test_a_later_queue_id_past_32_bits_leaves_its_streak_to_be_read_one_by_one() -> None:
    frames = [answer(number, queueId="2147483647") for number in range(MANY)]
    (streak,) = streaks(b"".join([*frames[:-1], answer(MANY - 1, queueId="2147483648")]))
    assert (len(streak), read_together(streak)) == (MIN_STREAK, None)
