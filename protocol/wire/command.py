"""One remoting command (Apache: RemotingCommand) and its two header encodings.

Header as JSON: an object with code, extFields, flag, language, opaque, remark, serializeTypeCurrentRPC, version.
Header as ROCKETMQ (Apache: RocketMQSerializable), big-endian:

    offset size name
    0      2    code
    2      1    language (LanguageCode)
    3      2    version
    5      4    opaque
    9      4    flag        bit 0: response, bit 1: one-way
    13     4    remark length, then the remark in UTF-8
    ..     4    length of extFields, then pairs of [2 key length, key, 4 value length, value]

extFields stay raw until somebody reads them: a header class is decoded straight from the raw bytes on the hot paths.
"""

from __future__ import annotations

import enum
import json
import struct
from typing import Any

import attrs
import msgspec

from twisted_mq.protocol.codes import LANGUAGES
from twisted_mq.protocol.errors import ProtocolError

CURRENT_VERSION = 479
"""MQVersion ordinal of V5_3_3: what a peer sees as this side's version."""

RESPONSE_FLAG = 1
ONE_WAY_FLAG = 2


class SerializeType(enum.IntEnum):
    """First byte of the header length field."""

    JSON = 0
    ROCKETMQ = 1


_LANGUAGE_CODES = {name: code for code, name in enumerate(LANGUAGES)}
_BINARY_HEAD = struct.Struct(">HBHii")
_LENGTH = struct.Struct(">i")
_WITHOUT_REMARK = struct.Struct(">HBHiiII")
"""What stands before the extFields of a header without a remark: all requests, and most answers."""
_EMPTY_FIELDS = b"{}"


class CommandError(ProtocolError):
    """A header that is framed correctly but cannot be read."""


class _JsonHeader(msgspec.Struct, gc=False):
    code: int
    flag: int = 0
    opaque: int = 0
    language: str | int = "JAVA"
    version: int = 0
    remark: str | None = None
    extFields: msgspec.Raw = msgspec.Raw(b"")
    serializeTypeCurrentRPC: str | None = None


_decode_json_header = msgspec.json.Decoder(_JsonHeader).decode
_decode_text_fields = msgspec.json.Decoder(dict[str, str]).decode
_decode_any_fields = msgspec.json.Decoder(dict[str, Any] | None).decode
_encode_json = msgspec.json.Encoder(order="deterministic").encode


@attrs.define(eq=False)
class RemotingCommand:
    """A request or an answer. `ext_fields` holds the header's fields as text, as both encodings carry them.

    `raw_ext_fields` are the encoded fields of a command that was read (empty where there were none), `None` for one
    that was made here. `names_serialize_type` is False for peers that leave serializeTypeCurrentRPC out (C++, Node).
    """

    code: int
    opaque: int = 0
    flag: int = 0
    language: str = "PYTHON"
    version: int = CURRENT_VERSION
    remark: str | None = None
    body: bytes = b""
    serialize_type: int = SerializeType.JSON
    raw_ext_fields: Any = None
    names_serialize_type: bool = True
    _ext_fields: dict[str, str] | None = None

    @property
    def ext_fields(self) -> dict[str, str]:
        """All header fields as text, decoded at the first look. Raises CommandError where they cannot be read."""
        if self._ext_fields is None:
            self._ext_fields = self._read_ext_fields()
        return self._ext_fields

    def _read_ext_fields(self) -> dict[str, str]:
        raw = self.raw_ext_fields
        if not raw:
            return {}
        if self.serialize_type == SerializeType.ROCKETMQ:
            return decode_binary_fields(raw)
        return decode_json_fields(raw)

    @property
    def is_response(self) -> bool:
        return bool(self.flag & RESPONSE_FLAG)

    @property
    def is_one_way(self) -> bool:
        return bool(self.flag & ONE_WAY_FLAG)

    @classmethod
    def request(cls, code: int, ext_fields: dict[str, str] | None = None, body: bytes = b"") -> RemotingCommand:
        """A request; whoever sends it sets `opaque` (and the one-way flag)."""
        return cls(code=code, body=body, ext_fields=ext_fields or {})

    def answer(
        self,
        code: int = 0,
        remark: str | None = None,
        ext_fields: dict[str, str] | None = None,
        body: bytes = b"",
    ) -> RemotingCommand:
        """The answer to this request: same opaque and same header encoding (Apache's clients read both)."""
        return RemotingCommand(
            code=code,
            opaque=self.opaque,
            flag=RESPONSE_FLAG,
            remark=remark,
            body=body,
            serialize_type=self.serialize_type,
            ext_fields={} if ext_fields is None else ext_fields,
        )


def _as_text(value: Any) -> str:
    """A JSON value inside extFields as the text that Apache's client would have sent."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def decode_json_fields(raw: Any) -> dict[str, str]:
    """extFields of a JSON header as text. Numbers and booleans, as C++ and Node clients send them, become text."""
    try:
        return _decode_text_fields(raw)
    except (msgspec.DecodeError, UnicodeDecodeError):
        pass
    try:
        fields = _decode_any_fields(raw) or {}
        return {name: _as_text(value) for name, value in fields.items() if value is not None}
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise CommandError(f"extFields: {error}") from error


def decode_binary_fields(raw: bytes) -> dict[str, str]:
    """extFields of a ROCKETMQ header. Raises CommandError where a length leads outside of `raw`."""
    fields: dict[str, str] = {}
    position, end = 0, len(raw)
    try:
        while position < end:
            key_at = position + 2
            size_at = key_at + (raw[position] << 8 | raw[position + 1])
            value_at = size_at + 4
            position = value_at + (raw[size_at + 2] << 8 | raw[size_at + 3])
            if raw[size_at] or raw[size_at + 1]:  # 64 KiB or more; single bytes are read faster than slices
                position += raw[size_at] << 24 | raw[size_at + 1] << 16
            if position > end:
                raise CommandError(f"extFields: a value of {position - value_at} bytes leads past the header's end")
            fields[raw[key_at:size_at].decode()] = raw[value_at:position].decode()
    except IndexError:
        raise CommandError("extFields: cut off inside of a length") from None
    except UnicodeDecodeError as error:
        raise CommandError(f"extFields: {error}") from error
    return fields


def _language_name(language: str | int) -> str:
    if isinstance(language, str):
        return language
    if 0 <= language < len(LANGUAGES):
        return LANGUAGES[language]
    raise CommandError(f"language: no LanguageCode {language}")


def decode_json_command(header: bytes, body: bytes) -> RemotingCommand:
    """A command from a JSON header. Raises CommandError."""
    try:
        read = _decode_json_header(header)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise CommandError(f"JSON header: {error}") from error
    language = read.language
    return RemotingCommand(
        read.code,
        read.opaque,
        read.flag,
        language if type(language) is str else _language_name(language),
        read.version,
        read.remark,
        body,
        0,
        read.extFields,
        read.serializeTypeCurrentRPC is not None,
    )


def decode_binary_command(header: bytes, body: bytes) -> RemotingCommand:
    """A command from a ROCKETMQ header. Raises CommandError."""
    if len(header) < _WITHOUT_REMARK.size:
        raise CommandError(f"ROCKETMQ header: {len(header)} bytes, at least {_WITHOUT_REMARK.size} are needed")
    code, language, version, opaque, flag, remark_size, fields_size = _WITHOUT_REMARK.unpack_from(header)
    remark, fields_at = None, _WITHOUT_REMARK.size
    if remark_size:
        remark, fields_at, fields_size = _read_remark(header, remark_size)
    fields_end = fields_at + fields_size
    if fields_end > len(header):
        raise CommandError(f"ROCKETMQ header: extFields of {fields_size} bytes lead past the header's end")
    name = _language_name(language) if language else "JAVA"
    return RemotingCommand(code, opaque, flag, name, version, remark, body, 1, header[fields_at:fields_end])


def _read_remark(header: bytes, size: int) -> tuple[str, int, int]:
    """The remark, where the extFields begin, and how long they are."""
    fields_at = _WITHOUT_REMARK.size + size
    if fields_at > len(header):
        raise CommandError(f"ROCKETMQ header: a remark of {size} bytes leads past the header's end")
    end = fields_at - _LENGTH.size
    try:
        remark = header[end - size : end].decode()
    except UnicodeDecodeError as error:
        raise CommandError(f"ROCKETMQ header: remark: {error}") from error
    return remark, fields_at, int.from_bytes(header[end:fields_at], "big")


def encode_json_header(command: RemotingCommand) -> bytes:
    """The JSON header, keys sorted and without absent members, as Apache's writer has it.

    Fields of a command that was read leave as they came (a C++ client's numbers stay numbers).
    """
    header: dict[str, Any] = {"code": int(command.code)}
    if command.raw_ext_fields:
        header["extFields"] = command.raw_ext_fields
    elif command.raw_ext_fields is None and command.ext_fields:
        header["extFields"] = command.ext_fields
    header["flag"] = command.flag
    header["language"] = command.language
    header["opaque"] = command.opaque
    if command.remark is not None:
        header["remark"] = command.remark
    if command.names_serialize_type:
        header["serializeTypeCurrentRPC"] = "JSON"
    header["version"] = command.version
    return _encode_json(header)


def encode_binary_fields(fields: dict[str, str]) -> bytes:
    """extFields in the ROCKETMQ encoding, in the order of the mapping."""
    parts = []
    for name, value in fields.items():
        key, data = name.encode(), value.encode()
        parts.append(len(key).to_bytes(2, "big") + key + len(data).to_bytes(4, "big") + data)
    return b"".join(parts)


def encode_binary_header(command: RemotingCommand) -> bytes:
    """The ROCKETMQ header. Raises CommandError for a language without a LanguageCode."""
    language = _LANGUAGE_CODES.get(command.language)
    if language is None:
        raise CommandError(f"language: no LanguageCode for {command.language!r}")
    remark = (command.remark or "").encode()
    raw = command.raw_ext_fields
    fields = encode_binary_fields(command.ext_fields) if raw is None else raw
    head = _BINARY_HEAD.pack(command.code & 0xFFFF, language, command.version, command.opaque, command.flag)
    return b"".join((head, _LENGTH.pack(len(remark)), remark, _LENGTH.pack(len(fields)), fields))
