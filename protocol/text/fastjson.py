"""JSON as Apache's writer (fastjson 1.2.83) has it: integer map keys without quotes, and whole objects as map keys.

    {0:"1.2.3.4:10911"}                                     BrokerData.brokerAddrs
    {{"brokerName":"b","queueId":0,"topic":"T"}:{...}}      ConsumeStats.offsetTable

`loads` reads standard JSON and this dialect, `dumps` writes either. An object as a key is an `ObjectKey`.
"""

from __future__ import annotations

import re
from json import JSONDecodeError
from json.decoder import scanstring  # type: ignore[attr-defined]
from typing import TypeAlias, cast

import msgspec

from twisted_mq.protocol.errors import BodyError

MAX_DEPTH = 200
"""Levels of nesting. Apache's bodies have at most eight; fastjson itself has no limit but the thread's stack."""

_decode = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode
_encode_sorted = msgspec.json.Encoder(order="sorted").encode
_BLANKS = re.compile(r"[ \t\r\n\f\b]*")
_NUMBER = re.compile(r"-?[0-9]{1,400}(\.[0-9]{1,400})?([eE][+-]?[0-9]{1,3})?(?![0-9.A-Za-z_$])")
_BARE_KEY = re.compile(r"-?[0-9]{1,40}(?=[ \t\r\n\f\b]*:)|[A-Za-z_$][A-Za-z0-9_$]{0,255}")
_KEY_OR_TEXT = re.compile(
    r'"(?:[^"\\]|\\.)*+\\?(?:"|\Z)|(?P<before>[{,][ \t\r\n]*)(?P<key>-?[0-9]{1,40})(?=[ \t\r\n]*:)', re.DOTALL
)
"""A text, ended or not, or an integer as a key; no character is looked at twice."""
_BARE = "\0"
"""The mark of a key that was an integer, as JSON would escape it: a text that has this escape itself is read character by
character."""
_WORDS: tuple[tuple[str, bool | None], ...] = (("null", None), ("true", True), ("false", False))
_SURROGATE = re.compile("[\ud800-\udfff]")


Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str | int, Json] | None"
"""A value as it is read. Keys that were objects are ObjectKeys."""


class ObjectKey(str):
    """The JSON text of an object that stands as a key of a map: standard JSON, compact, keys sorted."""

    __slots__ = ()


class _Reader:
    """A recursive reader of the dialect. Each character is looked at a bounded number of times."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.position = 0
        self.inside_key = False

    def fail(self, expected: str) -> BodyError:
        found = self.text[self.position : self.position + 20]
        return BodyError("JSON", f"expected {expected} at character {self.position}, found {found!r}")

    def skip_blanks(self) -> str:
        """Return the next character that is not blank; empty at the end."""
        match = _BLANKS.match(self.text, self.position)
        self.position = match.end() if match else self.position
        return self.text[self.position : self.position + 1]

    def take(self, mark: str) -> bool:
        found = self.skip_blanks() == mark
        self.position += found
        return found

    def value(self, depth: int) -> Json:
        first = self.skip_blanks()
        if first == '"':
            return self.string()
        if first == "{":
            return self.object(depth + 1)
        if first == "[":
            return self.array(depth + 1)
        for word, value in _WORDS:
            if self.text.startswith(word, self.position):
                self.position += len(word)
                return value
        return self.number()

    def string(self) -> str:
        try:
            value, self.position = scanstring(self.text, self.position + 1, False)
        except JSONDecodeError as error:
            raise BodyError("JSON", str(error)) from error
        return value if value.isascii() else _SURROGATE.sub("�", value)

    def number(self) -> int | float:
        match = _NUMBER.match(self.text, self.position)
        if match is None:
            raise self.fail("a value")
        self.position = match.end()
        if match[1] is None and match[2] is None:
            return int(match[0])
        return float(match[0])

    def array(self, depth: int) -> list[Json]:
        self.open(depth)
        values: list[Json] = []
        if self.take("]"):
            return values
        while True:
            values.append(self.value(depth))
            if self.take("]"):
                return values
            if not self.take(","):
                raise self.fail("',' or ']'")

    def object(self, depth: int) -> dict[str | int, Json]:
        self.open(depth)
        members: dict[str | int, Json] = {}
        if self.take("}"):
            return members
        while True:
            key = self.key(depth)
            if not self.take(":"):
                raise self.fail("':'")
            members[key] = self.value(depth)
            if self.take("}"):
                return members
            if not self.take(","):
                raise self.fail("',' or '}'")

    def open(self, depth: int) -> None:
        if depth > MAX_DEPTH:
            raise BodyError("JSON", f"more than {MAX_DEPTH} levels at character {self.position}")
        self.position += 1

    def key(self, depth: int) -> str | int:
        first = self.skip_blanks()
        if first == '"':
            return self.string()
        if first == "{":
            return self.object_key(depth)
        match = _BARE_KEY.match(self.text, self.position)
        if match is None:
            raise self.fail("a key")
        self.position = match.end()
        return int(match[0]) if match[0].lstrip("-").isdigit() else match[0]

    def object_key(self, depth: int) -> ObjectKey:
        if self.inside_key:  # each level would double the backslashes of the one below
            raise self.fail("a key that is not an object, inside an object that is a key")
        self.inside_key = True
        key = ObjectKey(dumps(self.object(depth + 1), standard=True).decode())
        self.inside_key = False
        return key


def loads(data: bytes) -> Json:
    """Return the value of a JSON text, standard or of the dialect. Raises BodyError.

    Quoted keys are text, unquoted integer keys are int, objects as keys are ObjectKey. At least one value is needed;
    blanks may follow it.
    """
    try:
        return cast(Json, _decode(data))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass
    try:
        text = bytes(data).decode()
    except UnicodeDecodeError as error:
        raise BodyError("JSON", f"not UTF-8: {error}") from error
    try:
        return _with_integer_keys(text)
    except (msgspec.DecodeError, ValueError, RecursionError):
        return _one_by_one(text)


def _with_integer_keys(text: str) -> Json:
    """Return the value of a text that is standard except for integers as keys. Raises ValueError, RecursionError or
    msgspec.DecodeError for others.

    It takes half of the time that reading one by one does: a broker's file of offsets may have a hundred megabytes.
    """
    if "\\u0000" in text:
        raise ValueError("it has the mark of an integer")
    return _integers(cast(Json, _decode(_KEY_OR_TEXT.sub(_quoted, text))), 0)


def _quoted(found: re.Match[str]) -> str:
    key = found["key"]
    return found[0] if key is None else f'{found["before"]}"\\u0000{key}"'


def _integers(value: Json, depth: int) -> Json:
    """Return the value with its marked keys as integers."""
    if depth > MAX_DEPTH:
        raise ValueError("too many levels")
    if isinstance(value, dict):
        return {
            int(key[1:]) if type(key) is str and key.startswith(_BARE) else key: _integers(one, depth + 1)
            if isinstance(one, dict | list)
            else one
            for key, one in value.items()
        }
    if isinstance(value, list):
        return [_integers(one, depth + 1) for one in value]
    return value


def _one_by_one(text: str) -> Json:
    """Read a text of the whole dialect, character by character. Raises BodyError."""
    reader = _Reader(text)
    value = reader.value(0)
    if reader.skip_blanks():
        raise reader.fail("the end")
    return value


def _has_bare_keys(value: object) -> bool:
    if isinstance(value, dict):
        return any(type(key) is not str for key in value) or any(map(_has_bare_keys, value.values()))
    return isinstance(value, list | tuple) and any(map(_has_bare_keys, value))


def _sorted_maps(value: object) -> object:
    """Return the same value with the keys of each map in order, integers before text."""
    if isinstance(value, dict):
        ordered = sorted(value.items(), key=lambda item: (isinstance(item[0], str), item[0]))
        return {key: _sorted_maps(member) for key, member in ordered}
    return [_sorted_maps(item) for item in value] if isinstance(value, list | tuple) else value


def _write(value: object, parts: list[bytes]) -> None:
    if isinstance(value, dict):
        mark = b"{"
        for key, member in value.items():
            parts.append(mark + (_encode(key) if type(key) is str else str(key).encode()) + b":")
            _write(member, parts)
            mark = b","
        parts.append(b"}" if value else b"{}")
    elif isinstance(value, list | tuple):
        mark = b"["
        for member in value:
            parts.append(mark)
            _write(member, parts)
            mark = b","
        parts.append(b"]" if value else b"[]")
    else:
        parts.append(_encode(value))


def dumps(value: object, standard: bool = False, *, sort: bool = True) -> bytes:
    """Return the compact JSON text of dicts, lists, text, numbers, booleans and None.

    Integer keys and ObjectKeys are written bare; with `standard`, as quoted text (Apache's reader takes both). Keys are
    sorted, integers before text, unless `sort` is False: then they stay in the order of the dict.
    """
    if standard and not sort:
        return _encode(value)
    if not _has_bare_keys(value):
        return _encode_sorted(value) if sort else _encode(value)
    if sort:
        value = _sorted_maps(value)
    if standard:
        return _encode(value)
    parts: list[bytes] = []
    _write(value, parts)
    return b"".join(parts)
