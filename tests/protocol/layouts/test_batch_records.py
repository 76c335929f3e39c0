"""Records written as a batch, against the record that each message has by itself."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.forms import each_form as each_form
from twisted_mq.protocol.layouts.batch_records import encode_records
from twisted_mq.protocol.layouts.record_codec import encode_record

IPV4, IPV6 = b"\x7f\x00\x00\x01\x00\x00\x2a\x9f", bytes(19) + b"\x01"
Message = tuple[int, bytes, bytes]

FLAGS = st.integers(-(2**31), 2**31 - 1)
RAGGED = st.lists(st.tuples(FLAGS, st.binary(max_size=300), st.binary(max_size=300)), min_size=1, max_size=40)
ALIKE = st.tuples(st.integers(1, 200), st.integers(1, 200)).flatmap(
    lambda sizes: st.lists(
        st.tuples(FLAGS, *(st.binary(min_size=size, max_size=size) for size in sizes)), min_size=12, max_size=40
    )
)


def assert_each_is_as_by_itself(
    messages: list[Message], suffix: bytes, topic: bytes = b"T", born_host: bytes = IPV4, store_host: bytes = IPV4
) -> None:
    shared = {
        "queue_id": 3, "born_timestamp": 11, "born_host": born_host, "store_timestamp": 12, "store_host": store_host,
        "sys_flag": 2, "reconsume_times": 5,
    }  # fmt: skip
    columns = list(zip(*messages, strict=True))
    alike = all(len({len(message[place]) for message in messages}) == 1 for place in (1, 2))
    records, sizes = encode_records(topic, *columns, suffix, alike, queue_offset=40, physical_offset=1 << 40, **shared)
    alone: list[bytes] = []
    for number, (flag, body, properties) in enumerate(messages):
        offset = (1 << 40) + sum(map(len, alone))
        alone.append(
            encode_record(
                topic,
                body,
                properties + suffix,
                flag=flag,
                queue_offset=40 + number,
                physical_offset=offset,
                **shared,
            )
        )
    assert (bytes(records), sizes) == (b"".join(alone), list(map(len, alone)))


@given(RAGGED, st.binary(max_size=20))
def test_messages_of_any_lengths(messages: list[Message], suffix: bytes) -> None:
    assert_each_is_as_by_itself(messages, suffix)


@given(ALIKE, st.binary(max_size=20))
def test_messages_of_one_length(messages: list[Message], suffix: bytes) -> None:
    assert_each_is_as_by_itself(messages, suffix)


@pytest.mark.parametrize("topic", [b"T", b"t" * 127, b"t" * 128, b"t" * 255], ids=lambda topic: str(len(topic)))
@pytest.mark.parametrize("born_host", [IPV4, IPV6], ids=["born ipv4", "born ipv6"])
@pytest.mark.parametrize("store_host", [IPV4, IPV6], ids=["stored ipv4", "stored ipv6"])
@pytest.mark.parametrize("longer", [0, 1], ids=["one length", "ragged"])
def test_every_version_and_kind_of_host(topic: bytes, born_host: bytes, store_host: bytes, longer: int) -> None:
    messages = [(number, bytes([number]) * 9, b"K\x01v%02d\x02" % number) for number in range(20)]
    messages[7] = 7, b"x" * (9 + longer), messages[7][2]
    assert_each_is_as_by_itself(messages, b"CLUSTER\x01c\x02", topic, born_host, store_host)


@pytest.mark.parametrize("body", [b"", b"body"], ids=["no bodies", "no properties"])
def test_many_that_have_nothing(body: bytes) -> None:
    assert_each_is_as_by_itself([(0, body, b"" if body else b"A\x01b\x02")] * 20, b"")
