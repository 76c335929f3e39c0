"""Reads the body of REGISTER_BROKER in steps of a few milliseconds: it may have 16 MiB and name 250,000 topics.

Functions that take long are generators: they yield between their steps and return the result.
"""

from __future__ import annotations

import functools
import re
import zlib
from collections.abc import Callable, Generator
from typing import Annotated, Any, TypeAlias, TypeVar

import attrs
import msgspec

from twisted_mq.protocol.bodies.codec import decode_body, decode_value
from twisted_mq.protocol.bodies.register_broker import (
    LENGTH,
    MAX_INFLATED_BYTES,
    MAX_TEXT_BYTES,
    MAX_TOPICS,
    NAME,
    SECTIONS,
    V5_0_0,
    RegisterBrokerBody,
    named_topic_config,
    parse_attributes,
)
from twisted_mq.protocol.bodies.static_topic import TopicQueueMappingInfo
from twisted_mq.protocol.bodies.topic_config import TopicConfig, TopicConfigAndMappingSerializeWrapper
from twisted_mq.protocol.bodies.types import TopicFilterType
from twisted_mq.protocol.bodies.versions import DataVersion
from twisted_mq.protocol.errors import BodyError

TOPICS_OF_STEP = 500
BYTES_OF_STEP = 64 * 1024
INFLATED_OF_STEP = 1024 * 1024


@attrs.frozen
class RegisteredTopics:
    """A broker's registration. The configurations have no name: it is their key, and equal ones are one object."""

    topics: dict[str, TopicConfig] = attrs.field(factory=dict)
    data_version: DataVersion = attrs.field(factory=DataVersion)
    static_topics: dict[str, TopicQueueMappingInfo] = attrs.field(factory=dict)
    filter_servers: list[str] | None = None


Read = TypeVar("Read")
Section: TypeAlias = Generator[None, None, Read]
Steps = Section[RegisteredTopics]


def decode_register_broker(data: bytes, compressed: bool, broker_version: int) -> RegisterBrokerBody:
    """Parse the body of REGISTER_BROKER in one go. `broker_version`: the MQVersion ordinal in the command. Raises BodyError."""
    steps = read_register_broker(data, compressed, broker_version)
    try:
        while True:
            next(steps)
    except StopIteration as end:
        read: RegisteredTopics = end.value
    wrapper = TopicConfigAndMappingSerializeWrapper(
        topic_config_table={name: attrs.evolve(one, topic_name=name) for name, one in read.topics.items()},
        data_version=read.data_version,
        topic_queue_mapping_info_map=read.static_topics,
    )
    return RegisterBrokerBody(wrapper, read.filter_servers or [])


def read_register_broker(data: bytes, compressed: bool, broker_version: int) -> Steps:
    """Parse the body in steps. Raises BodyError."""
    if compressed:
        return (yield from _read_deflated(data, with_static_topics=broker_version >= V5_0_0))
    return (yield from _read_json(data, _JsonBody))


def read_old_registration(data: bytes) -> Steps:
    """Parse the topics alone, as JSON: the body of brokers before V3_0_11. Raises BodyError."""
    return (yield from _read_json(data, _JsonWrapper))


# the deflated form


class _Parts:
    """Cuts the inflated bytes into counts and pieces with a length; never past their end."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._position = 0

    def count(self) -> int:
        """Read a number of pieces: not more than can follow, each with its length, nor than MAX_TOPICS."""
        count = self._number()
        left = len(self._data) - self._position
        if not 0 <= count <= left // LENGTH.size:
            raise BodyError(NAME, f"{count} entries announced, {left} bytes are left")
        if count > MAX_TOPICS:
            raise BodyError(NAME, f"{count} topics, more than {MAX_TOPICS}")
        return count

    def piece(self) -> bytes:
        size = self._number()
        start, end = self._position, self._position + size
        if size < 0 or end > len(self._data):
            raise BodyError(NAME, f"a piece of {size} bytes at {start}, the inflated body has {len(self._data)}")
        self._position = end
        return self._data[start:end]

    def _number(self) -> int:
        end = self._position + LENGTH.size
        if end > len(self._data):
            raise BodyError(NAME, f"the inflated body ends at {len(self._data)}, inside of a number")
        number: int = LENGTH.unpack_from(self._data, self._position)[0]
        self._position = end
        return number


def _read_deflated(data: bytes, with_static_topics: bool) -> Steps:
    parts = _Parts((yield from _inflate(data)))
    read: dict[str, Any] = {}
    for name in SECTIONS:
        if name in _OF_ONE_PIECE:
            read[name] = _OF_ONE_PIECE[name](parts.piece())
        elif with_static_topics or name != "static_topics":
            read[name] = yield from _OF_PIECES[name](parts)
    return RegisteredTopics(**read)


def _data_version(piece: bytes) -> DataVersion:
    return decode_body(DataVersion, _short(piece, "dataVersion"))


def _filter_servers(piece: bytes) -> list[str]:
    servers: list[str] = decode_body(list[str], _short(piece, "filterServerList"))
    return servers


def _topics(parts: _Parts) -> Section[dict[str, TopicConfig]]:
    configs: dict[str, TopicConfig] = {}
    for number in range(parts.count()):
        name, config = named_topic_config(_text(parts.piece()))
        configs[name] = config
        if number % TOPICS_OF_STEP == TOPICS_OF_STEP - 1:
            yield
    return configs


def _static_topics(parts: _Parts) -> Section[dict[str, TopicQueueMappingInfo]]:
    mappings: dict[str, TopicQueueMappingInfo] = {}
    size = 0
    for _ in range(parts.count()):
        piece = parts.piece()
        mapping = _mapping(piece)
        mappings[mapping.topic] = mapping
        size += len(piece)
        if size > BYTES_OF_STEP:
            size = 0
            yield
    return mappings


_OF_ONE_PIECE: dict[str, Callable[[bytes], Any]] = {"data_version": _data_version, "filter_servers": _filter_servers}
_OF_PIECES: dict[str, Callable[[_Parts], Section[Any]]] = {"topics": _topics, "static_topics": _static_topics}


def _mapping(text: bytes) -> TopicQueueMappingInfo:
    return decode_body(TopicQueueMappingInfo, _short(text, "topicQueueMappingInfoMap", BYTES_OF_STEP))


def is_longer_inflated(data: bytes, size: int) -> bool:
    """Return whether a deflated body has more than so many bytes. A damaged one has what can be inflated of it."""
    try:
        return len(zlib.decompressobj().decompress(data, size + 1)) > size
    except zlib.error:
        return False


def _inflate(data: bytes) -> Generator[None, None, bytes]:
    inflater = zlib.decompressobj()
    pieces: list[bytes] = []
    size = 0
    try:
        while not inflater.eof:
            piece = inflater.decompress(data, min(INFLATED_OF_STEP, MAX_INFLATED_BYTES + 1 - size))
            data = inflater.unconsumed_tail
            if not piece and not data:
                break
            pieces.append(piece)
            size += len(piece)
            if size > MAX_INFLATED_BYTES:
                raise BodyError(NAME, f"more than {MAX_INFLATED_BYTES} bytes when inflated")
            if size >= INFLATED_OF_STEP:
                yield
    except zlib.error as error:
        raise BodyError(NAME, f"not deflated: {error}") from error
    return b"".join(pieces)


def _text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise BodyError(NAME, f"a topic's text: {error}") from error


def _short(text: bytes, member: str, limit: int = MAX_TEXT_BYTES) -> bytes:
    if len(text) > limit:
        raise BodyError(NAME, f"{member} has {len(text)} bytes, more than {limit}")
    return text


# the JSON form

_Int = Annotated[int, msgspec.Meta(ge=-(1 << 31), le=(1 << 31) - 1)] | None


class _JsonTopic(msgspec.Struct, gc=False, rename="camel"):
    read_queue_nums: _Int = None
    write_queue_nums: _Int = None
    perm: _Int = None
    topic_filter_type: str | int | None = None
    topic_sys_flag: _Int = None
    order: bool | None = None
    attributes: msgspec.Raw = msgspec.Raw(b"{}")


class _JsonWrapper(msgspec.Struct, rename="camel"):
    topic_config_table: dict[str, _JsonTopic] | None = None
    data_version: msgspec.Raw = msgspec.Raw(b"{}")
    topic_queue_mapping_info_map: dict[str, msgspec.Raw] | None = None


class _JsonBody(msgspec.Struct, rename="camel"):
    topic_config_serialize_wrapper: _JsonWrapper | None = None
    filter_server_list: msgspec.Raw = msgspec.Raw(b"[]")


def _read_json(data: bytes, form: type[_JsonBody] | type[_JsonWrapper]) -> Steps:
    if data.count(b"{") > 2 * MAX_TOPICS:
        raise BodyError(NAME, f"more than {MAX_TOPICS} topics")
    if len(data) > BYTES_OF_STEP:
        yield
    read = _json(data, form)
    if read is None:
        read = _json((yield from _with_quoted_keys(data)), form)
    if isinstance(read, _JsonWrapper):
        read = _JsonBody(read, msgspec.Raw(b"null"))
    if read is None:
        raise BodyError(NAME, "no JSON")
    wrapper = read.topic_config_serialize_wrapper or _JsonWrapper()
    if len(data) > BYTES_OF_STEP:
        yield
    configs = yield from _configs(wrapper.topic_config_table or {})
    mappings = yield from _mappings(wrapper.topic_queue_mapping_info_map or {})
    data_version = decode_body(DataVersion, _short(bytes(wrapper.data_version), "dataVersion"))
    servers = _short(bytes(read.filter_server_list), "filterServerList")
    filter_servers = None if servers == b"null" else decode_body(list[str], servers)
    return RegisteredTopics(configs, data_version, mappings, filter_servers)


def _json(data: bytes, form: type[_JsonBody] | type[_JsonWrapper]) -> _JsonBody | _JsonWrapper | None:
    """Parse standard JSON, None for any other text. Raises BodyError for members of other types."""
    try:
        return msgspec.json.decode(data, type=form, strict=False)
    except msgspec.ValidationError as error:
        raise BodyError(NAME, str(error)) from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


_TO_BARE_KEY = re.compile(
    rb"""(?:[^"{,]++ | "(?:[^"\\]++|\\.)*+" | [{,](?!\s*-?[0-9]+\s*:)){1,20000}+""", re.DOTALL | re.VERBOSE
)
_BARE_KEY = re.compile(rb"([{,])\s*(-?[0-9]+)\s*:")


def _with_quoted_keys(data: bytes) -> Generator[None, None, bytes]:
    """Quote bare keys, reading each byte once or twice."""
    pieces: list[bytes] = []
    position = told = 0
    while position < len(data):
        match = _TO_BARE_KEY.match(data, position)
        key = _BARE_KEY.match(data, position) if match is None else None
        if match is not None:
            pieces.append(match[0])
            position = match.end()
        elif key is not None:
            pieces.append(b'%s"%s":' % (key[1], key[2]))
            position = key.end()
        else:
            break
        if position - told > BYTES_OF_STEP:
            told = position
            yield
    return b"".join([*pieces, data[position:]])


def _configs(topics: dict[str, _JsonTopic]) -> Generator[None, None, dict[str, TopicConfig]]:
    configs: dict[str, TopicConfig] = {}
    for number, (name, topic) in enumerate(topics.items()):
        configs[name] = _config(
            topic.read_queue_nums,
            topic.write_queue_nums,
            topic.perm,
            topic.topic_filter_type,
            topic.topic_sys_flag,
            topic.order,
            bytes(topic.attributes),
        )
        if number % TOPICS_OF_STEP == TOPICS_OF_STEP - 1:
            yield
    return configs


def _mappings(texts: dict[str, msgspec.Raw]) -> Generator[None, None, dict[str, TopicQueueMappingInfo]]:
    mappings: dict[str, TopicQueueMappingInfo] = {}
    size = 0
    for topic, text in texts.items():
        mappings[topic] = _mapping(bytes(text))
        size += len(bytes(text))
        if size > BYTES_OF_STEP:
            size = 0
            yield
    return mappings


@functools.lru_cache(maxsize=1024)
def _config(
    read: int | None,
    write: int | None,
    perm: int | None,
    kind: str | int | None,
    flag: int | None,
    order: bool | None,
    attributes: bytes,
) -> TopicConfig:
    return TopicConfig(
        read_queue_nums=16 if read is None else read,
        write_queue_nums=16 if write is None else write,
        perm=6 if perm is None else perm,
        topic_filter_type="SINGLE_TAG" if kind is None else str(decode_value(TopicFilterType, kind)),
        topic_sys_flag=flag or 0,
        order=bool(order),
        attributes=parse_attributes(attributes),
    )
