"""The body classes equal the reference tables of 5.3.3: members, values of a fresh object, samples of Apache's writer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, get_args

import attrs
import pytest

from twisted_mq.protocol import bodies
from twisted_mq.protocol.bodies import decode_body, encode_body, types
from twisted_mq.protocol.bodies.types import wire_name

REFERENCE = json.loads((Path(__file__).parent / "reference" / "bodies.json").read_text())
CLOCK = 10**12
"""Values above it are the time of the reference's recording."""

BEYOND_THE_CLASS = {
    # written by the broker's managers, which extend these classes: seen in slave_sync.frames
    "ConsumerOffsetSerializeWrapper": {"groupTopicMap"},
    "SubscriptionGroupWrapper": {"forbiddenTable"},
    # the time spans as text, which only people read
    "QueueTimeSpan": {"consumeTimeStampStr", "maxTimeStampStr", "minTimeStampStr"},
}


def members(name: str, *, written: bool) -> set[str]:
    fields = attrs.fields(getattr(bodies, name))
    return {
        wire_name(field.name, field.metadata) for field in fields if field.metadata.get("written", True) or not written
    }


def without_clock_and_empty(value: Any) -> Any:
    """A JSON value with times set to 0, and without what is empty: Java's null and our empty text or list."""
    if isinstance(value, dict):
        kept = {key: without_clock_and_empty(member) for key, member in value.items()}
        return {key: member for key, member in kept.items() if member not in ("", [], {})}
    if isinstance(value, list):
        return [without_clock_and_empty(item) for item in value]
    return 0 if type(value) is int and value > CLOCK else value


@pytest.mark.parametrize("name", REFERENCE["classes"])
def test_members_equal_the_reference(name: str) -> None:
    row = REFERENCE["classes"][name]
    difference = members(name, written=True) ^ set(row["written"] or row["read"])
    assert difference == BEYOND_THE_CLASS.get(name, set())
    assert set(row["read"]) <= members(name, written=False)


FRESH = {name: row["fresh"] for name, row in REFERENCE["classes"].items() if row["fresh"]}


@pytest.mark.parametrize("name", FRESH)
def test_fresh_object_has_the_values_of_java(name: str) -> None:
    fresh = without_clock_and_empty(json.loads(FRESH[name]))
    for text_of_time in BEYOND_THE_CLASS["QueueTimeSpan"] if name == "QueueTimeSpan" else ():
        del fresh[text_of_time]
    defaults = {"language": "JAVA"} if name == "Connection" else {}
    assert without_clock_and_empty(json.loads(encode_body(getattr(bodies, name)()))) == fresh | defaults


@pytest.mark.parametrize("name", REFERENCE["enums"])
def test_enum_names_stand_at_their_ordinals(name: str) -> None:
    (names,) = get_args(getattr(types, name))[1:]
    assert list(names.names) == REFERENCE["enums"][name]


@pytest.mark.parametrize("name", REFERENCE["samples"])
def test_sample_of_apaches_writer_is_written_alike(name: str) -> None:
    text = REFERENCE["samples"][name].encode()
    class_name = "BrokerData" if name == "accepts_mixed_key_quoting" else name.split("_")[0]
    body = decode_body(getattr(bodies, class_name), text)
    assert decode_body(getattr(bodies, class_name), encode_body(body, standard=True)) == body
    assert encode_body(body, standard=name.endswith("_standard")) == text
