"""Request of a message."""

from __future__ import annotations

import zlib
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from twisted_mq.client.core.message import Message
from twisted_mq.client.producing.outgoing import Outgoing, SendRequests, outgoing, outgoing_batch, sent_properties
from twisted_mq.client.producing.producer_options import SendLimits
from twisted_mq.protocol.bodies import MessageQueue
from twisted_mq.protocol.codes import RequestCode
from twisted_mq.protocol.layouts.batch_entry import decode_batch
from twisted_mq.protocol.messages.compression import CompressionType
from twisted_mq.protocol.text.properties import decode_properties, encode_properties
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.protocol.wire.framing import encode_frame

LIMITS = SendLimits()
QUEUE = MessageQueue("T", "broker-a", 3)


def message(body: Any = b"body", topic: str = "T", **rest: Any) -> Message:
    return Message(topic, body, **rest)


def test_outgoing_adds_key_and_wait_and_leaves_the_message_alone() -> None:
    sent = message(tags="A")
    ready = outgoing(sent, "KEY1", LIMITS)
    assert decode_properties(ready.properties) == {"TAGS": "A", "UNIQ_KEY": "KEY1", "WAIT": "true"}
    assert (ready.topic, ready.body, ready.sys_flag, ready.unique_key) == ("T", b"body", 0, "KEY1")
    assert ready.request_code is RequestCode.SEND_MESSAGE_V2
    assert sent.properties == {"TAGS": "A"}


def test_unique_key_set_by_hand_stays() -> None:
    assert outgoing(message(properties={"UNIQ_KEY": "MINE"}), "KEY1", LIMITS).unique_key == "MINE"


@given(
    st.dictionaries(
        st.sampled_from(["TAGS", "KEYS", "p", "UNIQ_KEY", "WAIT", "100%"]), st.sampled_from(["", "v", "%s"])
    ),
    st.sampled_from(["T", "%RETRY%g"]),
)
def test_properties_leave_in_the_messages_order_with_key_and_wait_behind_them(
    properties: dict[str, str], topic: str
) -> None:
    ready = outgoing(message(topic=topic, properties=properties), "K", LIMITS)
    sent = sent_properties(message(properties=properties), "K")
    assert (ready.properties, ready.unique_key) == (encode_properties(sent), sent["UNIQ_KEY"])


@pytest.mark.parametrize(("size", "compressed"), [(4095, False), (4096, True), (9000, True)])
def test_large_body_is_compressed(size: int, compressed: bool) -> None:
    body = b"x" * size
    ready = outgoing(message(body), "K", LIMITS)
    assert ready.sys_flag == (0x301 if compressed else 0)
    assert (zlib.decompress(ready.body) if compressed else ready.body) == body


def test_compression_type_stands_in_the_flag() -> None:
    limits = SendLimits(compress_over_bytes=1, compress_type=CompressionType.LZ4)
    assert outgoing(message(), "K", limits).sys_flag == 0x101


def test_retry_message_carries_its_tries_in_the_header() -> None:
    retried = message(topic="%RETRY%g", properties={"RECONSUME_TIME": "3", "MAX_RECONSUME_TIMES": "16"})
    ready = outgoing(retried, "K", LIMITS)
    assert (ready.reconsume_times, ready.max_reconsume_times) == (3, 16)
    assert decode_properties(ready.properties) == {"UNIQ_KEY": "K", "WAIT": "true"}


def test_half_message_is_flagged() -> None:
    assert outgoing(message(properties={"TRAN_MSG": "true"}), "K", LIMITS).sys_flag == 4


def test_batch_keeps_a_key_for_each_message() -> None:
    ready = outgoing_batch([message(b"1", tags="A"), message(b"2")], ["K1", "K2"])
    assert ready.unique_key == "K1,K2"
    assert ready.request_code is RequestCode.SEND_BATCH_MESSAGE
    assert decode_properties(ready.properties) == {"WAIT": "true"}
    assert [(one.body, one.properties) for one in decode_batch(ready.body, "T")] == [
        (b"1", {"TAGS": "A", "UNIQ_KEY": "K1", "WAIT": "true"}),
        (b"2", {"UNIQ_KEY": "K2", "WAIT": "true"}),
    ]


def test_batch_may_carry_one_key_for_all() -> None:
    ready = outgoing_batch([message(b"1")], ["K1"], "ALL")
    assert decode_properties(ready.properties) == {"UNIQ_KEY": "ALL", "WAIT": "true"}


def test_request_has_the_fields_apache_sends() -> None:
    """As recorded in remoting/producer_async_oneway, apart from names and times."""
    ready = outgoing(message(b"async 1", tags="T1", keys="ak1"), "K", LIMITS)
    request = SendRequests("PG", queue_nums=4).command(ready, QUEUE, 1795217858558)
    properties = request.ext_fields.pop("i")
    assert request.code == 310
    assert request.ext_fields == {
        "a": "PG", "b": "T", "c": "TBW102", "d": "4", "e": "3", "f": "0", "g": "1795217858558", "h": "0",
        "j": "0", "k": "false", "m": "false", "n": "broker-a",
    }  # fmt: skip
    assert decode_properties(properties) == {"TAGS": "T1", "KEYS": "ak1", "UNIQ_KEY": "K", "WAIT": "true"}


NAMES = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
OUTGOING = st.builds(
    Outgoing, topic=st.sampled_from(["T", "U%d", '"opaque":0,']), body=st.binary(max_size=8), properties=NAMES,
    flag=st.integers(-(2**31), 2**31 - 1), sys_flag=st.integers(0, 255), unique_key=NAMES, batch=st.booleans(),
    reply=st.booleans(), reconsume_times=st.sampled_from([0, 0, 2]), max_reconsume_times=st.sampled_from([None, None, 3]),
)  # fmt: skip


@given(st.lists(OUTGOING, min_size=1, max_size=4), NAMES, st.integers(0, 2**31 - 1))
def test_ready_requests_are_the_bytes_of_the_commands(messages: list[Outgoing], group: str, opaque: int) -> None:
    requests = SendRequests(group, queue_nums=4)
    for number, one in enumerate(messages):
        queue = attrs.evolve(QUEUE, queue_id=number % 2)
        command = requests.command(one, queue, 1795217858558 + number)
        command.opaque = opaque
        ready = requests.ready(one, queue, 1795217858558 + number)
        if isinstance(ready, RemotingCommand):
            ready.opaque = opaque
        assert (encode_frame(ready) if isinstance(ready, RemotingCommand) else ready(opaque)) == encode_frame(command)


def test_what_is_completed_or_a_retry_is_a_command_that_can_be_changed() -> None:
    plain = outgoing(message(b"1"), "K", LIMITS)
    assert isinstance(SendRequests("PG", 4, completed=True).ready(plain, QUEUE, 1), RemotingCommand)
    assert isinstance(SendRequests("PG", 4).ready(plain._replace(reconsume_times=1), QUEUE, 1), RemotingCommand)
    assert not isinstance(SendRequests("PG", 4).ready(plain, QUEUE, 1), RemotingCommand)
