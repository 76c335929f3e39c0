"""Records made together equal those made one by one."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twisted_mq.protocol.layouts.joined_records import Texts, encode_joined, measure
from twisted_mq.protocol.layouts.record_codec import encode_record

IPV4, IPV6 = b"\x0a\x00\x00\x01\x00\x00\x12\x34", bytes(range(20))
HOSTS = st.sampled_from((IPV4, IPV6))
INT32, INT64 = st.integers(-(2**31), 2**31 - 1), st.integers(0, 2**63 - 1)
Message = tuple[bytes, bytes, bytes, int, int, int]
"""Body, two texts of the properties, flag, queue id, time."""


def messages(body: st.SearchStrategy[bytes], text: st.SearchStrategy[bytes]) -> st.SearchStrategy[list[Message]]:
    return st.lists(st.tuples(body, text, text, INT32, st.integers(0, 99), INT64), min_size=1, max_size=40)


def of_length(length: int) -> st.SearchStrategy[bytes]:
    return st.binary(min_size=length, max_size=length)


RAGGED = messages(st.binary(max_size=300), st.binary(max_size=100))
ALIKE = st.tuples(st.integers(0, 200), st.integers(0, 100)).flatmap(lambda two: messages(*map(of_length, two)))


def assert_each_is_as_by_itself(
    given: list[Message],
    *,
    topic: Texts = b"T",
    born: bytes = IPV4,
    host: bytes = IPV4,
    count: int | None = None,
    before: bytes = b"A\x01b\x02",
    behind: bytes = b"CLUSTER\x01c\x02",
    one_queue: bool = False,
) -> None:
    bodies, first, second, flags, queue_ids, times = map(list, zip(*given, strict=True))
    if one_queue:
        flags, queue_ids, times = ([7] * len(given), [3] * len(given), [11] * len(given))
    properties: Sequence[Texts] = [before, first, second, behind]
    topics = [topic] * len(given) if isinstance(topic, bytes) else topic
    alike = all(len({*map(len, texts)}) == 1 for texts in (bodies, first, second, topics))
    lengths = measure(topic, bodies, properties, born, host, alike=alike)
    places = [1 << 40]
    alone: list[bytes] = []
    for number, body in enumerate(bodies):
        text = before + first[number] + second[number] + behind
        queue = 100 + number
        alone.append(
            encode_record(
                topics[number],
                body,
                text,
                queue_ids[number],
                queue,
                places[-1],
                times[number],
                born,
                5,
                host,
                flags[number],
                1,
                3,
            )
        )
        places.append(places[-1] + len(alone[-1]))
    made = encode_joined(
        topic, bodies, properties, lengths,
        queue_ids=3 if one_queue else queue_ids, flags=7 if one_queue else flags,
        queue_offsets=range(100, 100 + (len(given) if count is None else count)), physical_offsets=places,
        born_timestamps=11 if one_queue else times, born_host=born, store_timestamp=5, store_host=host, sys_flag=1,
        reconsume_times=3,
    )  # fmt: skip
    assert (made, lengths.sizes) == (b"".join(alone[:count]), [*map(len, alone)])


@given(RAGGED, HOSTS, HOSTS, st.booleans())
def test_messages_of_any_lengths(given: list[Message], born: bytes, host: bytes, one_queue: bool) -> None:
    assert_each_is_as_by_itself(given, born=born, host=host, one_queue=one_queue)


@given(ALIKE, HOSTS, HOSTS, st.booleans())
def test_messages_of_one_length(given: list[Message], born: bytes, host: bytes, one_queue: bool) -> None:
    assert_each_is_as_by_itself(given, born=born, host=host, one_queue=one_queue)


@given(
    st.one_of(RAGGED, ALIKE),
    st.sampled_from([(b"T", b"U"), (b"T", b"longer"), (b"t" * 127, b"")]),
    st.lists(st.booleans(), min_size=40, max_size=40),
    st.integers(1, 40),
)
def test_messages_of_different_topics(
    given: list[Message], two: tuple[bytes, bytes], which: list[bool], count: int
) -> None:
    topics = [two[second] for second in which[: len(given)]]
    assert_each_is_as_by_itself(given, topic=topics, count=min(count, len(given)))


@given(st.one_of(RAGGED, ALIKE), st.integers(1, 40))
def test_there_are_as_many_as_queue_offsets(given: list[Message], count: int) -> None:
    assert_each_is_as_by_itself(given, count=min(count, len(given)))


@pytest.mark.parametrize("topic", [b"T", b"t" * 127, b"t" * 128, b"t" * 255], ids=lambda topic: str(len(topic)))
@pytest.mark.parametrize("longer", [0, 1], ids=["one length", "ragged"])
def test_every_version(topic: bytes, longer: int) -> None:
    given = [(bytes([number]) * 9, b"K\x01v%02d\x02" % number, b"", number, number, number) for number in range(20)]
    given[7] = (b"x" * (9 + longer), *given[7][1:])
    assert_each_is_as_by_itself(given, topic=topic)
