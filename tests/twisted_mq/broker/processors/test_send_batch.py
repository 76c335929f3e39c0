"""The messages of a batch send, made by columns, against what each would be by itself."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.forms import each_form as each_form
from twisted_mq.broker.processors.send_batch import batch_messages, inner_batch
from twisted_mq.protocol.errors import BrokerError, RecordError
from twisted_mq.protocol.layouts.batch_entry import LEAST_ENTRY_BYTES, encode_entry
from twisted_mq.protocol.layouts.queue_entry import MAX_BATCH_NUM
from twisted_mq.protocol.text.java import from_utf8, tags_code, utf8
from twisted_mq.storage.interfaces import InnerMessage

PATTERN = InnerMessage("T", 1, b"", b"", {}, 0, sys_flag=2)
ALWAYS = b"CLUSTER\x01c\x02MSG_REGION\x01r\x02TRACE_ON\x01true\x02"
SHARED = {"UNIQ_KEY": "BATCH", "WAIT": "true"}
NAMES = st.sampled_from(["UNIQ_KEY", "WAIT", "TAGS", "KEYS", "XTAGS", "é", "W"])
VALUES = st.sampled_from(["", "true", "TAGS", "A || B", "é", "a\x01b", "nul\0", "WAIT"])
TEXTS = st.builds(
    lambda pairs, end: utf8("\x02".join(f"{name}\x01{value}" for name, value in pairs) + end * bool(pairs)),
    st.lists(st.tuples(NAMES, VALUES), max_size=4),
    st.sampled_from(["", "\x02"]),
)


def twin(properties: bytes, shared: dict[str, str]) -> tuple[bytes, int]:
    """A message's properties and tags code, one step after another."""
    if properties and not properties.endswith(b"\x02"):
        properties += b"\x02"
    for name, value in shared.items():
        if not (b"\x02" + properties).count(utf8(f"\x02{name}\x01")):
            properties += utf8(f"{name}\x01{value}\x02")
    _, _, rest = (b"\x02" + properties).partition(b"\x02TAGS\x01")
    return properties + ALWAYS, tags_code(from_utf8(rest.partition(b"\x02")[0]))


def assert_made_as_alone(texts: list[bytes], shared: dict[str, str]) -> None:
    body = b"".join(encode_entry(number, b"body %d" % number, text) for number, text in enumerate(texts))
    made = list(batch_messages(body, shared, ALWAYS, PATTERN).messages())
    assert [(one.properties, one.tags_code) for one in made] == [twin(text, shared) for text in texts]
    assert [(one.flag, one.body) for one in made] == [(number, b"body %d" % number) for number in range(len(texts))]
    assert {(one.topic, one.queue_id, one.sys_flag) for one in made} <= {("T", 1, 2)}


@given(st.lists(TEXTS, max_size=20), st.dictionaries(NAMES, st.sampled_from(["", "v", "é"]), max_size=3))
def test_messages_of_any_properties(texts: list[bytes], shared: dict[str, str]) -> None:
    assert_made_as_alone(texts, shared)


@given(TEXTS, st.dictionaries(NAMES, st.sampled_from(["v", "é"]), max_size=3))
def test_messages_with_the_same_properties(text: bytes, shared: dict[str, str]) -> None:
    assert_made_as_alone([text] * 20, shared)


@pytest.mark.parametrize(
    "odd",
    [
        b"UNIQ_KEY\x01K0003\x02WAIT\x01true\x02",
        b"UNIQ_KEY\x01K0003\x02WAIX\x01true\x02",
        b"UNIQ_KEY\x01K\x0203\x02WAIT\x01true\x02",
        b"UNIQ_KEY\x01K0003\x02WAIT\x01trueX",
        b"TAGS\x01_____K000\x02WAIT\x01true\x02",
        b"UNIQ_KEY\x01K\xff\xfe03\x02WAIT\x01true\x02",
        b"",
    ],
)
def test_one_among_many_that_are_alike(odd: bytes) -> None:
    texts = [b"UNIQ_KEY\x01K%04d\x02WAIT\x01true\x02" % number for number in range(20)]
    assert_made_as_alone([*texts[:9], odd, *texts[10:]], SHARED)


@pytest.mark.parametrize("count", [1, 20])
def test_messages_that_are_alike_and_lack_nothing_stay_alike(count: int) -> None:
    """The store encodes them together."""
    texts = [b"UNIQ_KEY\x01K%04d\x02WAIT\x01true\x02" % number for number in range(count)]
    body = b"".join(encode_entry(0, b"body", text) for text in texts)
    batch = batch_messages(body, SHARED, ALWAYS, PATTERN)
    assert (batch.alike, list(batch.properties)) == (True, texts)


@pytest.mark.parametrize("tags", [b"A", "é".encode()])
def test_tags_of_messages_that_are_alike(tags: bytes) -> None:
    assert_made_as_alone(
        [b"UNIQ_KEY\x01K%02d\x02WAIT\x01true\x02TAGS\x01%b\x02" % (n, tags) for n in range(20)], SHARED
    )


@pytest.mark.parametrize("shared", [{"WAIT": "v"}, {"KEYS": "v"}], ids=["tail of the name", "tail of the value"])
def test_end_of_a_name_is_another_name(shared: dict[str, str]) -> None:
    assert_made_as_alone([b"AIT\x01KEYS\x02"] * 20, shared)


def test_too_long_an_inner_batch_is_refused_before_all_of_it_is_read() -> None:
    body = bytes(LEAST_ENTRY_BYTES) * (2 * MAX_BATCH_NUM) + b"damage"
    with pytest.raises(BrokerError, match="a batch of more than 32767 messages, a batch queue accepts 1 to 32767"):
        inner_batch(body, {}, 0, PATTERN)


def test_a_cut_batch_is_refused() -> None:
    body = b"".join(encode_entry(0, b"body", b"A\x01b\x02") for _ in range(20))
    with pytest.raises(RecordError, match="in a batch"):
        batch_messages(body[:-1], SHARED, ALWAYS, PATTERN)
