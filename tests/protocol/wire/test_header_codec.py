"""Headers from and to extFields: both encodings, other languages' forms, wrong values, and damage of any kind."""

from __future__ import annotations

import contextlib
import json
from typing import Any
from unittest.mock import patch

import attrs
import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from twisted_mq.protocol import headers
from twisted_mq.protocol.boundary_type import BoundaryType
from twisted_mq.protocol.errors import CommandError, HeaderError
from twisted_mq.protocol.headers import (
    CreateTopicRequestHeader,
    EndTransactionRequestHeader,
    GetMaxOffsetRequestHeader,
    GetRouteInfoRequestHeader,
    HeartbeatRequestHeader,
    PullMessageResponseHeader,
    QueryConsumerOffsetRequestHeader,
    SearchOffsetRequestHeader,
    SendMessageRequestHeader,
    SendMessageRequestHeaderV2,
    SendMessageResponseHeader,
)
from twisted_mq.protocol.headers.fields import FieldKind
from twisted_mq.protocol.wire import header_codec
from twisted_mq.protocol.wire.command import RemotingCommand, SerializeType
from twisted_mq.protocol.wire.extfields import encode_binary_fields
from twisted_mq.protocol.wire.header_codec import TypedCommand, decode_header, encode_header, fast_header
from twisted_mq.protocol.wire.header_fields import wire_fields

SEND = SendMessageRequestHeaderV2(
    producer_group="PG",
    topic="T",
    default_topic="TBW102",
    default_topic_queue_nums=4,
    queue_id=-1,
    sys_flag=0,
    born_timestamp=1795217217214,
    flag=0,
    properties="KEYS\x01k\u00e9\x02",
    unit_mode=False,
    batch=True,
    broker_name="b",
)
SEND_FIELDS = {
    "a": "PG",
    "b": "T",
    "c": "TBW102",
    "d": "4",
    "e": "-1",
    "f": "0",
    "g": "1795217217214",
    "h": "0",
    "i": "KEYS\x01k\u00e9\x02",
    "k": "false",
    "m": "true",
    "n": "b",
}


def json_command(fields: Any) -> RemotingCommand:
    return RemotingCommand(310, raw_ext_fields=msgspec.Raw(json.dumps(fields).encode()))


def binary_command(fields: dict[str, str]) -> RemotingCommand:
    return RemotingCommand(310, serialize_type=SerializeType.ROCKETMQ, raw_ext_fields=encode_binary_fields(fields))


def own_command(fields: dict[str, str]) -> RemotingCommand:
    return RemotingCommand(310, ext_fields=fields)


FORMS = {"json": json_command, "binary": binary_command, "made here": own_command}
every_form = pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)


@every_form
def test_header_reads_from_every_form(form: Any) -> None:
    assert decode_header(SendMessageRequestHeaderV2, form(SEND_FIELDS)) == SEND


def test_header_is_written_as_text_without_what_is_none() -> None:
    assert encode_header(SEND) == SEND_FIELDS


def test_enum_and_boolean_are_written_as_java_does() -> None:
    header = SearchOffsetRequestHeader(topic="T", queue_id=0, timestamp=1, boundary_type=BoundaryType.UPPER, lo=True)
    assert encode_header(header) == {
        "lo": "true",
        "topic": "T",
        "queueId": "0",
        "timestamp": "1",
        "boundaryType": "UPPER",
    }


@every_form
@pytest.mark.parametrize(
    ("text", "value"), [("upper", BoundaryType.UPPER), ("LOWER", BoundaryType.LOWER), ("?", BoundaryType.LOWER)]
)
def test_boundary_type_reads_as_in_java(form: Any, text: str, value: BoundaryType) -> None:
    fields = {"topic": "T", "queueId": "0", "timestamp": "1", "boundaryType": text}
    assert decode_header(SearchOffsetRequestHeader, form(fields)).boundary_type is value


def test_numbers_and_booleans_of_other_clients() -> None:
    """The C++ client sends numbers, the Node client numbers and booleans."""
    fields = {"consumerGroup": "g", "topic": 17, "queueId": 3, "setZeroIfNotFound": True, "unknown": [1]}
    assert decode_header(QueryConsumerOffsetRequestHeader, json_command(fields)) == QueryConsumerOffsetRequestHeader(
        consumer_group="g", topic="17", queue_id=3, set_zero_if_not_found=True
    )


TRUE = ["true", "TRUE", "True"]
FALSE = ["false", "1", "0", "yes", "on", ""]


@every_form
@pytest.mark.parametrize(("text", "value"), [*((text, True) for text in TRUE), *((text, False) for text in FALSE)])
def test_only_the_word_true_is_true(form: Any, text: str, value: bool) -> None:
    """The C++ client sends batch=1 for a batch that the broker then keeps as one message."""
    header = decode_header(SendMessageRequestHeaderV2, form({**SEND_FIELDS, "m": text}))
    assert header.batch is value


@pytest.mark.parametrize(("sent", "value"), [(1, False), (0, False), (True, True), (False, False), (None, None)])
def test_booleans_of_json(sent: Any, value: Any) -> None:
    assert decode_header(SendMessageRequestHeaderV2, json_command({**SEND_FIELDS, "m": sent})).batch is value


@every_form
def test_absent_fields_have_the_value_of_java(form: Any) -> None:
    header = decode_header(GetMaxOffsetRequestHeader, form({"topic": "T", "queueId": "0"}))
    assert header == GetMaxOffsetRequestHeader(topic="T", queue_id=0, committed=True)


@pytest.mark.parametrize("raw", [None, b"", msgspec.Raw(b""), msgspec.Raw(b"null"), msgspec.Raw(b"{}")], ids=repr)
def test_no_fields_at_all(raw: Any) -> None:
    command = RemotingCommand(34, raw_ext_fields=raw)
    assert decode_header(HeartbeatRequestHeader, command) == HeartbeatRequestHeader()
    with pytest.raises(HeaderError):
        decode_header(GetRouteInfoRequestHeader, command)


WRONG: dict[str, tuple[Any, dict[str, Any], str]] = {
    "missing": (
        SendMessageRequestHeaderV2,
        {"b": None},
        "SendMessageRequestHeaderV2.b: required, but missing, got None",
    ),
    "no number": (
        SendMessageRequestHeaderV2,
        {"e": "two"},
        "SendMessageRequestHeaderV2.e: not of type int, -2^31 to 2^31-1, got 'two'",
    ),
    "empty number": (
        SendMessageRequestHeaderV2,
        {"e": ""},
        "SendMessageRequestHeaderV2.e: not of type int, -2^31 to 2^31-1, got ''",
    ),
    "past 32 bits": (
        SendMessageRequestHeaderV2,
        {"e": "2147483648"},
        "SendMessageRequestHeaderV2.e: not in the range of 32 bits, got '2147483648'",
    ),
    "past 64 bits": (
        SendMessageRequestHeaderV2,
        {"g": "-9223372036854775809"},
        "SendMessageRequestHeaderV2.g: not in the range of 64 bits, got '-9223372036854775809'",
    ),
    "null": (
        SendMessageRequestHeaderV2,
        {"g": "null"},
        "SendMessageRequestHeaderV2.g: required, but missing, got 'null'",
    ),
}


@every_form
@pytest.mark.parametrize(("header_class", "change", "message"), WRONG.values(), ids=WRONG)
def test_wrong_fields_are_refused_by_header_and_wire_name(
    form: Any, header_class: Any, change: dict[str, Any], message: str
) -> None:
    fields = {name: text for name, text in {**SEND_FIELDS, **change}.items() if text is not None}
    with pytest.raises(HeaderError) as caught:
        decode_header(header_class, form(fields))
    assert str(caught.value) == message


@pytest.mark.parametrize(("name", "digits"), [("e", 10), ("g", 19)], ids=["32 bits", "64 bits"])
def test_number_is_in_its_range_however_many_of_its_length_came_before(name: str, digits: int) -> None:
    for first in "12":
        decode_header(SendMessageRequestHeaderV2, binary_command(SEND_FIELDS | {name: first + "0" * (digits - 1)}))
    with pytest.raises(HeaderError, match="not in the range of"):
        decode_header(SendMessageRequestHeaderV2, binary_command(SEND_FIELDS | {name: "9" * digits}))


TOPIC_FIELDS = {
    "topic": "T",
    "defaultTopic": "TBW102",
    "readQueueNums": "8",
    "writeQueueNums": "8",
    "perm": "6",
    "topicFilterType": "SINGLE_TAG",
    "order": "false",
}
END_FIELDS = {
    "producerGroup": "g",
    "tranStateTableOffset": "1",
    "commitLogOffset": "2",
    "commitOrRollback": "8",
    "msgId": "m",
}


@every_form
@pytest.mark.parametrize(
    ("header_class", "fields", "wire", "wrong"),
    [
        (CreateTopicRequestHeader, TOPIC_FIELDS, "topicFilterType", "NO_TAG"),
        (EndTransactionRequestHeader, END_FIELDS, "commitOrRollback", "4"),
    ],
)
def test_fields_with_few_values_take_no_others(
    form: Any, header_class: Any, fields: dict[str, str], wire: str, wrong: str
) -> None:
    assert encode_header(decode_header(header_class, form(fields))).items() >= fields.items()
    with pytest.raises(HeaderError) as caught:
        decode_header(header_class, form({**fields, wire: wrong}))
    assert (caught.value.field, "not one of" in caught.value.reason) == (wire, True)


def test_fields_that_cannot_be_cut_apart_are_a_command_error() -> None:
    command = RemotingCommand(310, serialize_type=SerializeType.ROCKETMQ, raw_ext_fields=b"\0\1a\0\0\0\xffxy")
    with pytest.raises(CommandError):
        decode_header(SendMessageRequestHeaderV2, command)
    with pytest.raises(CommandError):
        decode_header(SendMessageRequestHeaderV2, RemotingCommand(310, raw_ext_fields=msgspec.Raw(b'["a"]')))


@pytest.mark.parametrize("text", ["+4", "04", "4"])
@every_form
def test_integers_as_java_takes_them(form: Any, text: str) -> None:
    assert decode_header(SendMessageRequestHeaderV2, form({**SEND_FIELDS, "d": text})) == SEND


def test_fast_header_has_the_same_attributes() -> None:
    attributes = [field.name for field in attrs.fields(SendMessageRequestHeaderV2)]
    for form in FORMS.values():
        for _ in range(3):
            twin = fast_header(SendMessageRequestHeaderV2)(form(SEND_FIELDS))
            assert {name: getattr(twin, name) for name in attributes} == attrs.asdict(SEND)


@pytest.mark.parametrize("batch", ["true", "false"])
@pytest.mark.parametrize("form", [json_command, binary_command], ids=["json", "binary"])
def test_fields_as_apache_s_clients_write_them_are_read_at_once(form: Any, batch: str) -> None:
    with patch.object(header_codec, "read_fields", side_effect=AssertionError("read one by one")):
        header = decode_header(SendMessageRequestHeaderV2, form({**SEND_FIELDS, "m": batch}))
    assert header == attrs.evolve(SEND, batch=batch == "true")


@pytest.mark.parametrize(
    "changes",
    [
        {"queue_id": 2**31},
        {"queue_id": -(2**31) - 1},
        {"born_timestamp": 2**63},
        {"topic": None},
        {"reconsume_times": 2**31},
        {"queue_id": "seven"},
    ],
)
def test_header_that_is_handed_on_is_refused_as_if_it_came_over_the_wire(changes: dict[str, Any]) -> None:
    header = attrs.evolve(SEND, **changes)
    with pytest.raises(HeaderError) as expected:
        decode_header(SendMessageRequestHeaderV2, json_command(encode_header(header)))
    with pytest.raises(HeaderError) as found:
        fast_header(SendMessageRequestHeaderV2)(TypedCommand(310, header=header))
    assert str(found.value) == str(expected.value)


def test_header_that_is_handed_on_reads_as_another_class_and_with_other_fields() -> None:
    command = TypedCommand(310, header=SEND)
    assert fast_header(SendMessageRequestHeaderV2)(command) is SEND
    with pytest.raises(HeaderError):
        decode_header(SendMessageRequestHeader, command)
    command.replace_fields({**SEND_FIELDS, "b": "Other"})
    assert decode_header(SendMessageRequestHeaderV2, command) == attrs.evolve(SEND, topic="Other")


TEXTS = {
    FieldKind.TEXT: st.text(st.characters(codec="utf-8"), max_size=6),
    FieldKind.INT32: st.integers(-(2**31), 2**31 - 1).map(str),
    FieldKind.INT64: st.integers(-(2**63), 2**63 - 1).map(str),
    FieldKind.BOOLEAN: st.sampled_from(["true", "false"]),
    FieldKind.BOUNDARY: st.sampled_from(["UPPER", "LOWER"]),
}


def field_maps(header_class: Any) -> st.SearchStrategy[dict[str, str]]:
    fields = [field for field in wire_fields(header_class) if field.allowed is None]
    fixed = {field.wire: st.just(str(field.allowed[0])) for field in wire_fields(header_class) if field.allowed}
    needed = {field.wire: TEXTS[field.kind] for field in fields if field.required}
    optional = {field.wire: TEXTS[field.kind] for field in fields if not field.required}
    return st.fixed_dictionaries({**needed, **fixed}, optional=optional)


HEADER_CLASSES = [one for one in (getattr(headers, name) for name in headers.HOMES) if attrs.has(one)]


@pytest.mark.parametrize("header_class", HEADER_CLASSES, ids=lambda header_class: header_class.__name__)
@settings(max_examples=20)
@given(data=st.data())
def test_all_forms_read_alike_and_write_back(header_class: Any, data: st.DataObject) -> None:
    fields = data.draw(field_maps(header_class))
    header = decode_header(header_class, own_command(fields))
    assert decode_header(header_class, json_command(fields)) == header
    assert decode_header(header_class, binary_command(fields)) == header
    handed = TypedCommand(0, header=header)
    assert decode_header(header_class, handed) is header
    assert handed.ext_fields == encode_header(header)
    defaults = {field.wire for field in wire_fields(header_class) if field.default is not None}
    written = encode_header(header)
    assert {wire: text for wire, text in written.items() if wire in fields or wire not in defaults} == fields


@given(st.binary(max_size=60), st.sampled_from([SerializeType.JSON, SerializeType.ROCKETMQ]))
def test_no_raw_fields_raise_anything_but_their_errors(raw: bytes, serialize_type: int) -> None:
    for header_class in (SendMessageRequestHeaderV2, SearchOffsetRequestHeader, HeartbeatRequestHeader):
        with contextlib.suppress(HeaderError, CommandError):
            decode_header(header_class, RemotingCommand(1, serialize_type=serialize_type, raw_ext_fields=raw))


ANYTHING = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=4)
    | st.sampled_from(["null", "1e400", "4.5"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=2), inner, max_size=2),
    max_leaves=3,
)


@given(st.dictionaries(st.sampled_from(sorted(SEND_FIELDS)), ANYTHING, max_size=6))
def test_no_json_fields_raise_anything_but_their_errors(changes: dict[str, Any]) -> None:
    with contextlib.suppress(HeaderError, CommandError):
        decode_header(SendMessageRequestHeaderV2, json_command({**SEND_FIELDS, **changes}))


def test_headers_that_share_attributes_read_alike() -> None:
    first = {field.attribute: field.wire for field in wire_fields(SendMessageRequestHeader)}
    second = {field.attribute: field.wire for field in wire_fields(SendMessageRequestHeaderV2)}
    fields = {wire: SEND_FIELDS[second[name]] for name, wire in first.items() if second[name] in SEND_FIELDS}
    header = decode_header(SendMessageRequestHeader, json_command(fields))
    assert attrs.asdict(header).items() <= {**attrs.asdict(SEND)}.items()


def test_answers_read_from_every_form() -> None:
    sent = SendMessageResponseHeader(msg_id="7F", queue_id=1, queue_offset=2)
    pulled = PullMessageResponseHeader(suggest_which_broker_id=0, next_begin_offset=1, min_offset=0, max_offset=9)
    for form in FORMS.values():
        assert decode_header(SendMessageResponseHeader, form(encode_header(sent))) == sent
        assert decode_header(PullMessageResponseHeader, form(encode_header(pulled))) == pulled


def test_fields_of_a_header_that_comes_again_and_again_are_not_cut_apart() -> None:
    read = fast_header(QueryConsumerOffsetRequestHeader)
    fields = {"consumerGroup": "again and again", "topic": "T"}
    for number in range(100, 140):
        read(binary_command({**fields, "queueId": str(number)}))
    with patch.object(msgspec, "convert", side_effect=AssertionError("cut apart")):
        assert read(binary_command({**fields, "queueId": "777"})).queue_id == 777


def test_commands_with_the_same_header_are_two_commands() -> None:
    header = GetMaxOffsetRequestHeader(topic="T", queue_id=1)
    assert len({TypedCommand(30, 1, header=header), TypedCommand(30, 1, header=header)}) == 2
