from __future__ import annotations

import contextlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twisted_mq.protocol.codes import LANGUAGES
from twisted_mq.protocol.errors import CommandError
from twisted_mq.protocol.wire.command import (
    HEADER,
    RemotingCommand,
    SerializeType,
    binary_header,
    decode_binary_command,
    decode_json_command,
    encode_binary_header,
    encode_json_header,
)
from twisted_mq.protocol.wire.extfields import decode_binary_fields, decode_json_fields, encode_binary_fields

TEXTS = st.text(alphabet=st.characters(exclude_categories=("Cs",)), max_size=20)
FIELDS = st.dictionaries(TEXTS, TEXTS, max_size=6)


def test_a_json_header_has_sorted_keys_and_no_absent_members() -> None:
    command = RemotingCommand.request(105, {"topic": "T"})
    command.opaque = 7
    assert encode_json_header(command) == (
        b'{"code":105,"extFields":{"topic":"T"},"flag":0,"language":"PYTHON","opaque":7,'
        b'"serializeTypeCurrentRPC":"JSON","version":479}'
    )


def test_a_binary_header_is_laid_out_as_apache_s() -> None:
    command = RemotingCommand(
        310, 7, 1, "JAVA", 479, "why", b"", SerializeType.ROCKETMQ, ext_fields={"a": "1", "b": ""}
    )
    assert encode_binary_header(command).hex(" ", -4).replace(" ", "") == (
        "0136" "00" "01df" "00000007" "00000001"
        "00000003" "776879"
        "0000000f" "0001" "61" "00000001" "31" "0001" "62" "00000000"
    )  # fmt: skip


@given(
    code=st.integers(0, 0xFFFF),
    language=st.integers(0, len(LANGUAGES) - 1),
    version=st.integers(0, 0xFFFF),
    opaque=st.integers(-(2**31), 2**31 - 1),
    flag=st.integers(-(2**31), 2**31 - 1),
    remark=TEXTS,
    fields=st.binary(max_size=20),
)
def test_a_binary_header_is_written_and_read_as_declared(
    code: int, language: int, version: int, opaque: int, flag: int, remark: str, fields: bytes
) -> None:
    values = {"code": code, "language": language, "version": version, "opaque": opaque, "flag": flag}
    declared = HEADER.build({**values, "remark": remark.encode(), "ext_fields": fields})
    assert binary_header(code, language, version, opaque, flag, remark, fields) == declared
    command = decode_binary_command(declared, b"")
    assert encode_binary_header(command) == declared
    found = (command.code, command.language, command.version, command.opaque, command.flag, command.remark or "")
    assert found == (code, LANGUAGES[language], version, opaque, flag, remark)
    assert command.raw_ext_fields == fields


@given(
    code=st.integers(0, 32767),
    opaque=st.integers(-(2**31), 2**31 - 1),
    flag=st.integers(0, 3),
    language=st.sampled_from(["JAVA", "CPP", "PYTHON", "GO", "NODE_JS"]),
    version=st.integers(0, 32767),
    remark=st.one_of(st.none(), TEXTS.filter(bool)),
    fields=FIELDS,
    body=st.binary(max_size=20),
    kind=st.sampled_from(SerializeType),
)
def test_any_command_survives_both_encodings(
    kind: SerializeType,
    code: int,
    opaque: int,
    flag: int,
    language: str,
    version: int,
    remark: str | None,
    fields: dict[str, str],
    body: bytes,
) -> None:
    command = RemotingCommand(code, opaque, flag, language, version, remark, body, kind, ext_fields=fields)
    if kind is SerializeType.JSON:
        read = decode_json_command(encode_json_header(command), body)
    else:
        read = decode_binary_command(encode_binary_header(command), body)
    found = (read.code, read.opaque, read.flag, read.language, read.version, read.remark, read.ext_fields, read.body)
    assert found == (code, opaque, flag, language, version, remark, fields, body)
    assert read.serialize_type == kind


@given(FIELDS)
def test_any_fields_survive_the_binary_form(fields: dict[str, str]) -> None:
    assert decode_binary_fields(encode_binary_fields(fields)) == fields


def test_a_value_past_64_kib_survives_the_binary_form() -> None:
    fields = {"a": "x" * 70_000, "b": "y"}
    assert decode_binary_fields(encode_binary_fields(fields)) == fields


def test_numbers_booleans_and_objects_of_other_clients_become_text() -> None:
    raw = b'{"topic":"T","queueId":3,"batch":false,"unitMode":true,"gone":null,"rate":1.5,"o":{"a":[1,"x"]}}'
    assert decode_json_fields(raw) == {
        "topic": "T",
        "queueId": "3",
        "batch": "false",
        "unitMode": "true",
        "rate": "1.5",
        "o": '{"a":[1,"x"]}',
    }


def test_a_cpp_client_s_header_is_read_and_left_as_it_came() -> None:
    header = b'{"code":34,"extFields":{"queueId":3},"flag":0,"language":"CPP","opaque":5,"remark":"","version":63}\n'
    command = decode_json_command(header, b"")
    assert (command.language, command.version, command.remark, command.ext_fields) == ("CPP", 63, "", {"queueId": "3"})
    assert json.loads(encode_json_header(command)) == json.loads(header)


@pytest.mark.parametrize(("number", "name"), [(0, "JAVA"), (3, "PYTHON"), (len(LANGUAGES) - 1, LANGUAGES[-1])])
def test_a_language_given_as_a_number_is_named(number: int, name: str) -> None:
    assert decode_json_command(b'{"code":1,"language":%d}' % number, b"").language == name


@pytest.mark.parametrize("number", [-1, len(LANGUAGES)])
def test_a_number_of_no_language_is_refused(number: int) -> None:
    with pytest.raises(CommandError, match=f"no LanguageCode {number}"):
        decode_json_command(b'{"code":1,"language":%d}' % number, b"")


@pytest.mark.parametrize("raw", [b"5", b'"x"', b"[1]", b'{"a":1e999}', b'{"a":' + b"[" * 50_000 + b"]" * 50_000 + b"}"])
def test_fields_that_are_no_object_are_refused(raw: bytes) -> None:
    with pytest.raises(CommandError, match="extFields"):
        decode_json_fields(raw)


@pytest.mark.parametrize(
    "raw",
    [
        b"\0",
        b"\0\x01",
        b"\0\x05ab",
        b"\0\x01a",
        b"\0\x01a\0\0",
        b"\0\x01a\0\0\0\x02x",
        b"\0\x01a\xff\xff\xff\xffx",
        b"\0\x01\xff\0\0\0\x01x",
        b"\0\x01a\0\0\0\x01\xff",
        b"\0\x01a\0\0\0\x01x\0",
    ],
)
def test_binary_fields_whose_lengths_lead_astray_are_refused(raw: bytes) -> None:
    with pytest.raises(CommandError, match="extFields"):
        decode_binary_fields(raw)


@given(st.binary(max_size=80))
def test_no_bytes_raise_anything_else(raw: bytes) -> None:
    for read in (
        decode_binary_fields,
        decode_json_fields,
        lambda data: decode_binary_command(data, b""),
        lambda data: decode_json_command(data, b""),
    ):
        with contextlib.suppress(CommandError):
            read(raw)


def test_an_unknown_language_has_no_binary_form() -> None:
    with pytest.raises(CommandError, match="'KLINGON'"):
        encode_binary_header(RemotingCommand(1, language="KLINGON"))


@pytest.mark.parametrize("kind", list(SerializeType), ids=lambda kind: kind.name)
def test_an_answer_takes_opaque_and_encoding_of_its_request(kind: SerializeType) -> None:
    request = RemotingCommand(11, opaque=42, serialize_type=kind)
    answer = request.answer(19, "none", {"nextBeginOffset": "7"}, b"x")
    assert (answer.opaque, answer.serialize_type, answer.is_response, answer.is_one_way) == (42, kind, True, False)
    assert (answer.code, answer.remark, answer.ext_fields, answer.body) == (19, "none", {"nextBeginOffset": "7"}, b"x")
