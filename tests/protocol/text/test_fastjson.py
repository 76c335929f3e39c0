"""JSON of Apache's writer: both forms are read and written, and nothing makes the reader fail but with BodyError."""

from __future__ import annotations

import contextlib
import json
import re
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from twisted_mq.protocol.errors import BodyError
from twisted_mq.protocol.text.fastjson import MAX_DEPTH, ObjectKey, _one_by_one, _with_integer_keys, dumps, loads

QUEUE = ObjectKey('{"brokerName":"b","queueId":0,"topic":"T"}')

READ = {
    "standard": (b'{"a":[1,-2.5,true,false,null,"x"]}', {"a": [1, -2.5, True, False, None, "x"]}),
    "quoted integer key": (b'{"0":"a"}', {"0": "a"}),
    "unquoted integer keys": (b'{0:"a",-17:"b"}', {0: "a", -17: "b"}),
    "quoted and unquoted": (b'{0:"a","1":"b"}', {0: "a", "1": "b"}),
    "object as key": (b'{{"topic":"T","brokerName":"b","queueId":0}:{"maxOffset":5}}', {QUEUE: {"maxOffset": 5}}),
    "object as text key": (b'{"{\\"queueId\\":0}":1}', {'{"queueId":0}': 1}),
    "bare name": (b'{topic:"T"}', {"topic": "T"}),
    "blanks": (b' { 0 : [ ] , \t"a" :\r\n{ } } \n', {0: [], "a": {}}),
    "escapes in the dialect": (b'{0:"\\u0001\\n\\"\\u00e9\xc3\xa9"}', {0: '\x01\n"\u00e9\u00e9'}),
    "half a surrogate": (b'{0:"\\ud800"}', {0: "\ufffd"}),
    "pair of surrogates": (b'{0:"\\ud83d\\ude00"}', {0: "\U0001f600"}),
    "long and float": (b"{0:9223372036854775807,1:0.2,2:1e3}", {0: 2**63 - 1, 1: 0.2, 2: 1000.0}),
    "a text alone": (b'"x"', "x"),
}

DAMAGED = {
    "nothing": (b"", "expected a value at character 0"),
    "no end": (b'{0:"a"', "expected ',' or '}' at character 6"),
    "text without end": (b'{0:"a', "Unterminated string"),
    "no colon": (b"{0 1}", "expected a key at character 1"),
    "no comma": (b"[1 2]", "expected ',' or ']' at character 3"),
    "comma at the end": (b"[1,]", "expected a value at character 3"),
    "half a word": (b"[nul]", "expected a value at character 1"),
    "two values": (b"{} {}", "expected the end at character 3"),
    "number and letters": (b"[12abc]", "expected a value at character 1"),
    "number of 5000 digits": (b"1" * 5000, "expected a value at character 0"),
    "not UTF-8": (b'{0:"\xff"}', "not UTF-8"),
    "object key inside of an object key": (b'{{{"a":1}:1}:1}', "a key that is not an object"),
    "too deep": (b"{0:" * (MAX_DEPTH + 1), f"more than {MAX_DEPTH} levels"),
}


@pytest.mark.parametrize(("data", "value"), READ.values(), ids=READ)
def test_both_forms_are_read(data: bytes, value: Any) -> None:
    assert loads(data) == value
    assert repr(loads(data)) == repr(value)


@pytest.mark.parametrize(("data", "reason"), DAMAGED.values(), ids=DAMAGED)
def test_damaged_text_is_refused_with_the_place(data: bytes, reason: str) -> None:
    with pytest.raises(BodyError) as caught:
        loads(data)
    assert reason in caught.value.reason


def test_object_keys_are_equal_whatever_the_order_of_their_members() -> None:
    assert loads(b'{{"queueId":0,"topic":"T","brokerName":"b"}:1}') == {QUEUE: 1}


def test_dialect_is_written_with_bare_keys() -> None:
    value = {"t": {QUEUE: {"x": 1.0}, 10: [], 2: {}}, "a": None}
    assert dumps(value) == b'{"a":null,"t":{2:{},10:[],' + QUEUE.encode() + b':{"x":1.0}}}'


def test_standard_form_quotes_all_keys() -> None:
    value = {"t": {QUEUE: 1, 10: True}}
    assert dumps(value, standard=True) == b'{"t":{"10":true,' + json.dumps(QUEUE).encode() + b":1}}"


def test_order_of_the_dict_is_kept_on_demand() -> None:
    assert dumps({"b": 1, "a": {1: 2, 0: 3}}, sort=False) == b'{"b":1,"a":{1:2,0:3}}'


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text(st.characters(codec="utf-8")),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.integers(-(2**31), 2**31) | st.text(st.characters(codec="utf-8"), max_size=5), inner, max_size=4
        )
    ),
    max_leaves=20,
)


@given(VALUES)
def test_whatever_is_written_reads_back(value: Any) -> None:
    assert loads(dumps(value)) == value


@given(VALUES)
def test_standard_form_is_json(value: Any) -> None:
    def with_text_keys(value: Any) -> Any:
        if isinstance(value, dict):
            return {str(key): with_text_keys(member) for key, member in value.items()}
        return [with_text_keys(item) for item in value] if isinstance(value, list) else value

    keys_differ = all(len({str(key) for key in part}) == len(part) for part in dicts_in(value))
    if keys_differ:
        assert json.loads(dumps(value, standard=True)) == with_text_keys(value)


def dicts_in(value: Any) -> list[dict[Any, Any]]:
    if isinstance(value, dict):
        return [value, *(part for member in value.values() for part in dicts_in(member))]
    return [part for item in value for part in dicts_in(item)] if isinstance(value, list) else []


DIALECT = st.text(st.sampled_from('{}[]:,"\\01-.eE trufalsn\n{{0:'), max_size=60).map(str.encode)


def blanks_between(text: bytes) -> bytes:
    """The same text as Apache's pretty writer has it, but for what is in quotes."""
    return re.sub(rb'"(?:[^"\\]|\\.)*"|[{,:]', lambda found: found[0] + b"\n\t " * (len(found[0]) == 1), text)


@given(VALUES)
def test_integers_as_keys_are_read_at_once_as_they_are_one_by_one(value: Any) -> None:
    for data in (dumps(value), blanks_between(dumps(value))):
        text = data.decode()
        if "\\u0000" in text:
            with pytest.raises(ValueError, match="mark"):
                _with_integer_keys(text)
        else:
            assert repr(_with_integer_keys(text)) == repr(_one_by_one(text))


@given(DIALECT)
def test_what_is_read_at_once_is_what_is_read_one_by_one(data: bytes) -> None:
    try:
        value = _with_integer_keys(data.decode())
    except (msgspec.DecodeError, ValueError):
        return
    assert repr(value) == repr(_one_by_one(data.decode()))


@given(st.binary(max_size=60) | DIALECT)
def test_no_input_raises_anything_but_body_error(data: bytes) -> None:
    with contextlib.suppress(BodyError):
        loads(data)


@pytest.mark.parametrize(
    "unit", [b"[", b"{0:", b"{{", b'{"', b'"\\', b"1", b"-", b" ", b"{0:[", b"[0,", b'{{"a":0}:', b"a"], ids=repr
)
def test_a_megabyte_of_anything_is_refused_at_once(unit: bytes) -> None:
    """Nothing is read twice and nothing grows: with quadratic time these would take minutes."""
    with pytest.raises(BodyError):
        loads(unit * (2**20 // len(unit)) + b"?")
