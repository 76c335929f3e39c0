"""A broker's registration with a name server, as JSON or deflated (Apache: RegisterBrokerBody).

The deflated form, before zlib (all numbers 4 bytes, big-endian):

    length, DataVersion as JSON
    count,  then for each topic: length, its text "name readQueueNums writeQueueNums perm topicFilterType attributes"
    length, filterServerList as JSON
    count,  then for each static topic: length, TopicQueueMappingInfo as JSON     (brokers from V5_0_0 on)

REGISTRATION declares it; writer and reader take its sections in its order. Topic texts have no topicSysFlag and no order:
these are lost on the way, as with Apache.
"""

from __future__ import annotations

import functools
import struct
import zlib
from collections.abc import Sequence

import attrs
import construct
from attrs import field

from twisted_mq.protocol.bodies.codec import decode_body, decode_value, encode_body
from twisted_mq.protocol.bodies.topic_config import TopicConfig, TopicConfigAndMappingSerializeWrapper
from twisted_mq.protocol.errors import BodyError
from twisted_mq.protocol.text.fastjson import Json, dumps

MAX_INFLATED_BYTES = 32 * 1024 * 1024
MAX_TOPICS = 250_000
"""The most topics of a registration, and the most static topics. Apache has no limits; brokers keep some thousands of topics."""
MAX_TEXT_BYTES = 16 * 1024
"""A topic's attributes, the list of filter servers, the version."""

V5_0_0 = 413
"""MQVersion ordinal from which on the deflated form ends with static topics."""

NAME = "RegisterBrokerBody"

_NUMBER = construct.Int32sb
LENGTH = struct.Struct(_NUMBER.fmtstr)
"""A number before a piece: its bytes, or before several: how many they are."""
_PIECE = construct.Prefixed(_NUMBER, construct.GreedyBytes)
_PIECES = construct.PrefixedArray(_NUMBER, _PIECE)
REGISTRATION = construct.Struct(
    "data_version" / _PIECE,
    "topics" / _PIECES,
    "filter_servers" / _PIECE,
    "static_topics" / construct.Optional(_PIECES),
)
SECTIONS = tuple(subcon.name for subcon in REGISTRATION.subcons)


@attrs.frozen
class RegisterBrokerBody:
    """Request body of REGISTER_BROKER."""

    topic_config_serialize_wrapper: TopicConfigAndMappingSerializeWrapper = field(
        factory=TopicConfigAndMappingSerializeWrapper
    )
    filter_server_list: list[str] = field(factory=list)


def topic_config_text(config: TopicConfig) -> str:
    """Return a topic as one line of text (Apache: TopicConfig.encode)."""
    numbers = f"{config.read_queue_nums} {config.write_queue_nums} {config.perm}"
    return f"{config.topic_name} {numbers} {config.topic_filter_type} {dumps(config.attributes).decode()}"


def named_topic_config(text: str) -> tuple[str, TopicConfig]:
    """Return name and rest of a topic, from its text. Nearly all topics of a broker share the rest, and it is one object.

    Attributes that cannot be parsed are left out, as Apache does. Raises BodyError.
    """
    parts = text.split(" ", 5)
    if len(parts) < 5:
        raise BodyError(NAME, f"a topic's text has {len(parts)} parts of at least 5: {text[:200]!r}")
    return parts[0], _nameless(*parts[1:])


@functools.lru_cache(maxsize=1024)
def _nameless(read: str, write: str, perm: str, kind: str, attributes: str = "{}") -> TopicConfig:
    members: dict[str | int, Json] = {
        "readQueueNums": read,
        "writeQueueNums": write,
        "perm": perm,
        "topicFilterType": kind,
    }
    return attrs.evolve(decode_value(TopicConfig, members), attributes=parse_attributes(attributes.encode()))


def parse_attributes(text: bytes) -> dict[str, str]:
    """Parse attributes from JSON; none if they cannot be parsed or are too long."""
    if text == b"{}" or len(text) > MAX_TEXT_BYTES:
        return {}
    try:
        attributes: dict[str, str] = decode_body(dict[str, str], text)
    except BodyError:
        return {}
    return attributes


def _section(value: bytes | Sequence[bytes]) -> bytes:
    """Return a piece behind its length, or pieces behind their count."""
    if isinstance(value, bytes):
        return LENGTH.pack(len(value)) + value
    return b"".join((LENGTH.pack(len(value)), *map(_section, value)))


def encode_register_broker(body: RegisterBrokerBody, compressed: bool) -> bytes:
    """Return the body as it is sent; its CRC32 goes into the header's bodyCrc32."""
    if not compressed:
        return encode_body(body)
    wrapper = body.topic_config_serialize_wrapper
    sections: dict[str, bytes | list[bytes]] = {
        "data_version": encode_body(wrapper.data_version),
        "topics": [topic_config_text(config).encode() for config in wrapper.topic_config_table.values()],
        "filter_servers": encode_body(body.filter_server_list),
        "static_topics": [encode_body(mapping) for mapping in wrapper.topic_queue_mapping_info_map.values()],
    }
    return zlib.compress(b"".join(_section(sections[name]) for name in SECTIONS), 9)
