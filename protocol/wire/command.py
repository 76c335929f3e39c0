"""A remoting command (Apache: RemotingCommand) and its two header encodings.

Header as JSON: an object with code, extFields, flag, language, opaque, remark, serializeTypeCurrentRPC, version.
Header as ROCKETMQ (Apache: RocketMQSerializable), big-endian:

    offset size name
    0      2    code
    2      1    language (LanguageCode)
    3      2    version
    5      4    opaque
    9      4    flag        bit 0: response, bit 1: one-way
    13     4    remark_length, then the remark in UTF-8
    ..     4    ext_fields_length, then the extFields

HEADER declares it. extFields stay raw until they are read: a header class is decoded straight from the raw bytes on
the hot paths.
"""

from __future__ import annotations

import enum

import attrs
import construct
import msgspec

from twisted_mq.protocol.codes import LANGUAGES
from twisted_mq.protocol.errors import CommandError
from twisted_mq.protocol.layouts.derive import (
    derive_field,
    derive_fields,
    derive_head,
    derive_struct,
    field_offset,
    require_variable,
)
from twisted_mq.protocol.wire.extfields import decode_binary_fields, decode_json_fields, encode_binary_fields

CURRENT_VERSION = 479
"""MQVersion ordinal of V5_3_3: what a peer sees as this side's version."""

RESPONSE_FLAG = 1
ONE_WAY_FLAG = 2


class SerializeType(enum.IntEnum):
    """First byte of the header length field."""

    JSON = 0
    ROCKETMQ = 1


HEADER = construct.Struct(
    "code" / construct.Int16ub,
    "language" / construct.Int8ub,
    "version" / construct.Int16ub,
    "opaque" / construct.Int32sb,
    "flag" / construct.Int32sb,
    "remark_length" / construct.Rebuild(construct.Int32ub, construct.len_(construct.this.remark)),
    "remark" / construct.Bytes(construct.this.remark_length),
    "ext_fields_length" / construct.Rebuild(construct.Int32ub, construct.len_(construct.this.ext_fields)),
    "ext_fields" / construct.Bytes(construct.this.ext_fields_length),
)

_OPAQUE_AT = field_offset(HEADER, "opaque")
OPAQUE_PLACE = slice(_OPAQUE_AT, _OPAQUE_AT + derive_field(HEADER, "opaque").size)
"""The place of the opaque in a ROCKETMQ header."""
LANGUAGE_CODES = {name: code for code, name in enumerate(LANGUAGES)}
_FIXED = ("code", "language", "version", "opaque", "flag", "remark_length")
_UP_TO_REMARK = derive_head(HEADER, *_FIXED)
require_variable(HEADER, "remark", "ext_fields")
_FIELDS_LENGTH = derive_struct(construct.Struct(HEADER.ext_fields_length))
WITHOUT_REMARK = derive_fields(HEADER, *_FIXED, "ext_fields_length", remark_length=0)
"""The bytes before the extFields of a header without a remark: all requests, and most answers."""


class _JsonHeader(msgspec.Struct, gc=False):
    """In the order in which Apache's client writes the members: so each is found at once."""

    code: int
    extFields: msgspec.Raw = msgspec.Raw(b"")
    flag: int = 0
    language: str | int = "JAVA"
    opaque: int = 0
    remark: str | None = None
    serializeTypeCurrentRPC: str | None = None
    version: int = 0


_decode_json_header = msgspec.json.Decoder(_JsonHeader).decode
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
    raw_ext_fields: bytes | msgspec.Raw | None = None
    names_serialize_type: bool = True
    _ext_fields: dict[str, str] | None = None

    @property
    def ext_fields(self) -> dict[str, str]:
        """Return all header fields as text, decoded at the first call. Raises CommandError if they cannot be parsed."""
        fields = self._ext_fields
        if fields is None:
            raw = self.raw_ext_fields
            if not raw:
                fields = {}
            else:
                fields = decode_binary_fields(bytes(raw)) if self.serialize_type else decode_json_fields(raw)
            self._ext_fields = fields
        return fields

    def replace_fields(self, fields: dict[str, str]) -> None:
        """Replace the fields that the command was read or made with. Do not change the dict afterwards."""
        self.raw_ext_fields, self._ext_fields = None, fields

    @property
    def is_response(self) -> bool:
        return bool(self.flag & RESPONSE_FLAG)

    @property
    def is_one_way(self) -> bool:
        return bool(self.flag & ONE_WAY_FLAG)

    @classmethod
    def request(cls, code: int, ext_fields: dict[str, str] | None = None, body: bytes = b"") -> RemotingCommand:
        """Make a request; the sender sets `opaque` (and the one-way flag)."""
        return cls(code=code, body=body, ext_fields=ext_fields or {})

    def answer(
        self,
        code: int = 0,
        remark: str | None = None,
        ext_fields: dict[str, str] | None = None,
        body: bytes = b"",
    ) -> RemotingCommand:
        """Return the answer to this request: same opaque and same header encoding (Apache's clients read both)."""
        return RemotingCommand(
            code=code,
            opaque=self.opaque,
            flag=RESPONSE_FLAG,
            remark=remark,
            body=body,
            serialize_type=self.serialize_type,
            ext_fields={} if ext_fields is None else ext_fields,
        )


def _language_name(language: str | int) -> str:
    if isinstance(language, str):
        return language
    if 0 <= language < len(LANGUAGES):
        return LANGUAGES[language]
    raise CommandError(f"language: no LanguageCode {language}")


def decode_json_command(header: bytes, body: bytes) -> RemotingCommand:
    """Return a command from a JSON header. Raises CommandError."""
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
    """Return a command from a ROCKETMQ header. Raises CommandError."""
    if len(header) < WITHOUT_REMARK.size:
        raise CommandError(f"ROCKETMQ header: {len(header)} bytes, at least {WITHOUT_REMARK.size} are needed")
    code, language, version, opaque, flag, remark_size, fields_size = WITHOUT_REMARK.unpack_from(header)
    remark, fields_at = None, WITHOUT_REMARK.size
    if remark_size:
        remark, fields_at, fields_size = _read_remark(header, remark_size)
    fields_end = fields_at + fields_size
    if fields_end > len(header):
        raise CommandError(f"ROCKETMQ header: extFields of {fields_size} bytes lead past the header's end")
    name = _language_name(language) if language else "JAVA"
    return RemotingCommand(code, opaque, flag, name, version, remark, body, 1, header[fields_at:fields_end])


def _read_remark(header: bytes, size: int) -> tuple[str, int, int]:
    """Return the remark, where the extFields begin, and how long they are."""
    fields_at = WITHOUT_REMARK.size + size
    if fields_at > len(header):
        raise CommandError(f"ROCKETMQ header: a remark of {size} bytes leads past the header's end")
    end = fields_at - _FIELDS_LENGTH.size
    try:
        remark = header[end - size : end].decode()
    except UnicodeDecodeError as error:
        raise CommandError(f"ROCKETMQ header: remark: {error}") from error
    return remark, fields_at, _FIELDS_LENGTH.unpack_from(header, end)[0]


def encode_json_header(command: RemotingCommand) -> bytes:
    """Return the JSON header, keys sorted and without absent members, as Apache's writer has it.

    Fields of a command that was read leave as they came (a C++ client's numbers stay numbers).
    """
    header: dict[str, object] = {"code": int(command.code)}
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


def encode_binary_header(command: RemotingCommand) -> bytes:
    """Return the ROCKETMQ header. Raises CommandError for a language without a LanguageCode."""
    language = LANGUAGE_CODES.get(command.language)
    if language is None:
        raise CommandError(f"language: no LanguageCode for {command.language!r}")
    raw = command.raw_ext_fields
    fields = encode_binary_fields(command.ext_fields) if raw is None else bytes(raw)
    return binary_header(command.code, language, command.version, command.opaque, command.flag, command.remark, fields)


def binary_header(
    code: int, language: int, version: int, opaque: int, flag: int, remark: str | None, fields: bytes
) -> bytes:
    """Return the ROCKETMQ header around encoded extFields; only the low 16 bits of the code, as in Apache's writer."""
    if not remark:
        return WITHOUT_REMARK.pack(code & 0xFFFF, language, version, opaque, flag, 0, len(fields)) + fields
    text = remark.encode()
    head = _UP_TO_REMARK.pack(code & 0xFFFF, language, version, opaque, flag, len(text))
    return b"".join((head, text, _FIELDS_LENGTH.pack(len(fields)), fields))
