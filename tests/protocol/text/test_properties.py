from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from twisted_mq.protocol.text import properties as names
from twisted_mq.protocol.text.properties import (
    RESERVED_PROPERTIES,
    decode_each,
    decode_properties,
    decode_property_bytes,
    delete_property,
    encode_properties,
)

PLAIN = st.text(alphabet=st.characters(exclude_characters="\x01\x02", exclude_categories=("Cs",)), min_size=1)


def test_the_text_form_separates_by_one_and_two() -> None:
    assert encode_properties({"KEYS": "k1 k2", "TAGS": "A", "gone": None}) == "KEYS\x01k1 k2\x02TAGS\x01A\x02"


def test_the_last_separator_may_be_missing() -> None:
    assert decode_properties("KEYS\x01k1\x02TAGS\x01A") == {"KEYS": "k1", "TAGS": "A"}


def test_odd_parts_are_read_as_apache_reads_them() -> None:
    text = "\x02\x02a\x02\x01v\x02n\x01\x02x\x011\x02x\x012\x02y\x01a\x01b\x02"
    assert decode_properties(text) == {"x": "2", "y": "a\x01b"}


def test_no_properties_are_an_empty_text() -> None:
    assert encode_properties({}) == ""
    assert decode_properties("") == {}


def test_damaged_utf8_does_not_hide_the_other_properties() -> None:
    assert decode_property_bytes(b"a\x01\xff\x02b\x012\x02") == {"a": "�", "b": "2"}


def test_deleting_leaves_longer_names_and_values_alone() -> None:
    text = "XWAIT\x011\x02WAIT\x01true\x02WAITED\x01WAIT\x02"
    assert delete_property(text, "WAIT") == "XWAIT\x011\x02WAITED\x01WAIT\x02"
    assert delete_property(text, "TAGS") == text


@given(st.dictionaries(PLAIN, PLAIN))
def test_any_properties_survive_the_text_form(properties: dict[str, str]) -> None:
    assert decode_properties(encode_properties(properties)) == properties


@given(st.text(alphabet="ab\x01\x02", max_size=40))
@example("a\x01\x02b\x011\x02a\x012\x02")
def test_each_text_is_read_as_one_by_one(text: str) -> None:
    assert [*decode_properties(text).items()] == [*decode_each(text).items()]


def test_properties_without_a_value_are_left_out() -> None:
    assert encode_properties({"a": None, "b": "1", "c": None}) == "b\x011\x02"


@given(st.text(alphabet="ab\x01\x02", max_size=40))
def test_every_text_is_read(text: str) -> None:
    found = decode_properties(text)
    assert decode_properties(encode_properties(found)) == found


def test_the_reserved_names_are_the_51_of_apache_and_the_priority_of_newer_clients() -> None:
    assert len(RESERVED_PROPERTIES - {names.PROPERTY_PRIORITY}) == 51
    assert names.PROPERTY_PRIORITY in RESERVED_PROPERTIES
    assert names.PROPERTY_TAGS in RESERVED_PROPERTIES
    assert names.PROPERTY_SHARDING_KEY not in RESERVED_PROPERTIES
    assert names.PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX == "UNIQ_KEY"
    assert names.PROPERTY_CRC32 == "__CRC32#"
