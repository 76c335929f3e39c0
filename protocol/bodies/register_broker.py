"""What a broker registers with a name server, as JSON or deflated (Apache: RegisterBrokerBody).

The deflated form, before zlib (all numbers 4 bytes, big-endian):

    length, DataVersion as JSON
    count,  then for each topic: length, its text "name readQueueNums writeQueueNums perm topicFilterType attributes"
    length, filterServerList as JSON
    count,  then for each static topic: length, TopicQueueMappingInfo as JSON     (brokers from V5_0_0 on)

Topic texts have no topicSysFlag and no order: these are lost on the way, as with Apache.
"""

from __future__ import annotations

import zlib
from typing import Any

import attrs
from attrs import field

from twisted_mq.protocol.bodies.codec import decode_body, decode_value, encode_body
from twisted_mq.protocol.bodies.static_topic import TopicQueueMappingInfo
from twisted_mq.protocol.bodies.topic_config import TopicConfig, TopicConfigAndMappingSerializeWrapper
from twisted_mq.protocol.bodies.versions import DataVersion
from twisted_mq.protocol.errors import BodyError
from twisted_mq.protocol.text.fastjson import dumps

MAX_INFLATED_BYTES = 32 * 1024 * 1024
"""Some 500,000 topics. Apache has no limit."""

V5_0_0 = 413
"""MQVersion ordinal from which on the deflated form ends with static topics."""

_NAME = "RegisterBrokerBody"


@attrs.frozen
class RegisterBrokerBody:
    """Request body of REGISTER_BROKER."""

    topic_config_serialize_wrapper: TopicConfigAndMappingSerializeWrapper = field(
        factory=TopicConfigAndMappingSerializeWrapper
    )
    filter_server_list: list[str] = field(factory=list)


def topic_config_text(config: TopicConfig) -> str:
    """A topic as one line of text (Apache: TopicConfig.encode)."""
    numbers = f"{config.read_queue_nums} {config.write_queue_nums} {config.perm}"
    return f"{config.topic_name} {numbers} {config.topic_filter_type} {dumps(config.attributes).decode()}"


def parse_topic_config(text: str) -> TopicConfig:
    """A topic from its text. Attributes that cannot be read are left out, as Apache does. Raises BodyError."""
    parts = text.split(" ", 5)
    if len(parts) < 5:
        raise BodyError(_NAME, f"a topic's text has {len(parts)} parts of at least 5: {text[:200]!r}")
    names = ("topicName", "readQueueNums", "writeQueueNums", "perm", "topicFilterType")
    members: dict[str, Any] = dict(zip(names, parts, strict=False))
    if len(parts) == 6:
        members["attributes"] = _parse_attributes(parts[5])
    return decode_value(TopicConfig, members)


def _parse_attributes(text: str) -> dict[str, str]:
    try:
        attributes: dict[str, str] = decode_body(dict[str, str], text.encode())
    except BodyError:
        return {}
    return attributes


def _with_length(data: bytes) -> bytes:
    return len(data).to_bytes(4, "big") + data


def encode_register_broker(body: RegisterBrokerBody, compressed: bool) -> bytes:
    """The body as it is sent; its CRC32 goes into the header's bodyCrc32."""
    if not compressed:
        return encode_body(body)
    wrapper = body.topic_config_serialize_wrapper
    parts = [_with_length(encode_body(wrapper.data_version)), len(wrapper.topic_config_table).to_bytes(4, "big")]
    parts += [_with_length(topic_config_text(config).encode()) for config in wrapper.topic_config_table.values()]
    parts.append(_with_length(encode_body(body.filter_server_list)))
    mappings = wrapper.topic_queue_mapping_info_map
    parts.append(len(mappings).to_bytes(4, "big"))
    parts += [_with_length(encode_body(mapping)) for mapping in mappings.values()]
    return zlib.compress(b"".join(parts), 9)


class _Parts:
    """Cuts the inflated bytes into counts and pieces with a length; never past their end."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._position = 0

    def count(self) -> int:
        """A number of pieces: no more than can follow, at 4 bytes each."""
        count = self._number()
        if not 0 <= count <= (len(self._data) - self._position) // 4:
            raise BodyError(_NAME, f"{count} entries announced, {len(self._data) - self._position} bytes are left")
        return count

    def piece(self) -> bytes:
        size = self._number()
        start, end = self._position, self._position + size
        if size < 0 or end > len(self._data):
            raise BodyError(_NAME, f"a piece of {size} bytes at {start}, the inflated body has {len(self._data)}")
        self._position = end
        return self._data[start:end]

    def _number(self) -> int:
        end = self._position + 4
        if end > len(self._data):
            raise BodyError(_NAME, f"the inflated body ends at {len(self._data)}, inside of a number")
        number = int.from_bytes(self._data[self._position : end], "big", signed=True)
        self._position = end
        return number


def _inflate(data: bytes) -> bytes:
    inflater = zlib.decompressobj()
    try:
        inflated = inflater.decompress(data, MAX_INFLATED_BYTES)
    except zlib.error as error:
        raise BodyError(_NAME, f"not deflated: {error}") from error
    if inflater.unconsumed_tail:
        raise BodyError(_NAME, f"more than {MAX_INFLATED_BYTES} bytes when inflated")
    return inflated


def _text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise BodyError(_NAME, f"a topic's text: {error}") from error


def decode_register_broker(data: bytes, compressed: bool, broker_version: int) -> RegisterBrokerBody:
    """The body of REGISTER_BROKER. `broker_version`: the MQVersion ordinal in the command. Raises BodyError."""
    if not compressed:
        return decode_body(RegisterBrokerBody, data)
    parts = _Parts(_inflate(data))
    data_version = decode_body(DataVersion, parts.piece())
    configs = [parse_topic_config(_text(parts.piece())) for _ in range(parts.count())]
    filter_servers = decode_body(list[str], parts.piece())
    mappings: list[TopicQueueMappingInfo] = []
    if broker_version >= V5_0_0:
        mappings = [decode_body(TopicQueueMappingInfo, parts.piece()) for _ in range(parts.count())]
    wrapper = TopicConfigAndMappingSerializeWrapper(
        topic_config_table={config.topic_name: config for config in configs},
        data_version=data_version,
        topic_queue_mapping_info_map={mapping.topic: mapping for mapping in mappings},
    )
    return RegisterBrokerBody(wrapper, filter_servers)
