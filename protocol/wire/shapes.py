"""Commands of one shape: what a peer repeats is compared in one operation, and only what varies is cut out.

A producer sends the same header again and again, and changes a few values in it: queue, time, properties, opaque. A `Shape` is
such a header as a row of parts that are fixed and vary in turn. It is learned from a header that was read field by field. It
takes only headers of the same length whose fixed parts are equal, so whatever it takes has the same fields; `Streak.plain`
makes the command that any other way of reading it gives. A test holds both equal.

Example, the varying parts in brackets: {"code":310,"extFields":{...,"e":"[2]",...},"flag":0,...,"opaque":[4711],...}
"""

from __future__ import annotations

import functools
import itertools
import re
import struct
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias
from weakref import WeakValueDictionary

import attrs

from twisted_mq.protocol.errors import CommandError
from twisted_mq.protocol.layouts.derive import texts
from twisted_mq.protocol.text.properties import NAME_VALUE_SEPARATOR, PROPERTY_SEPARATOR
from twisted_mq.protocol.wire.command import (
    OPAQUE_PLACE,
    WITHOUT_REMARK,
    RemotingCommand,
    decode_binary_command,
    decode_json_command,
)
from twisted_mq.protocol.wire.extfields import spans_of

MAX_HEADER_BYTES = 1024
"""Longer headers have no shape."""
MAX_BODY_BYTES = 16 * 1024
"""Requests with longer bodies are read field by field: it is not their header that costs."""
MIN_STREAK = 4
"""Fewer requests are read field by field: what a streak costs once is as much as two requests."""
MAX_STREAK = 64
"""Requests of a streak. With bodies of MAX_BODY_BYTES they are 1 MiB."""
MAX_MARKS_OF_PEER, MAX_SHAPES_OF_MARK = 32, 4
"""A peer has as many shapes as their product at most."""
MAX_SHAPES = 4096
"""Shapes of all peers at a time, some 16 MB."""
LEARN_EVERY = 8
"""A header of a new length is learned when it comes for the second time, one that does not fit its length's shape so late."""
LEARN_AGAIN = 1000
"""The same where a header of the length could not have a shape."""

Parts: TypeAlias = tuple[bytes, ...]
"""A header in pieces: what is fixed and what varies, in turn."""
Row: TypeAlias = tuple[bytes, ...]
"""The parts of a request's header, and its body."""
Columns: TypeAlias = Sequence[Sequence[bytes]]
"""The columns of rows."""

OPAQUE_PART = ""
"""Name of the part that is the opaque: of a JSON header its digits, of a ROCKETMQ header its four bytes."""

Name: TypeAlias = str | tuple[str, str]
"""A field by its name on the wire, or the name of the properties' field and of one property."""


@attrs.frozen
class Varying:
    """The varying parts of the commands of one code: numbers, texts, the values of properties in one field, and the opaque.

    Texts may be missing. Headers with one of the properties `without` have no shape; `fixed` are properties whose values do
    not vary. `flag` is that of all these commands. Those that `is_unordered` may be processed before or behind the other
    requests of their read.
    """

    numbers: Collection[str]
    properties: str | None = None
    without: Collection[str] = ()
    fixed: Collection[str] = ()
    texts: Sequence[str] = ()
    flag: int = 0
    is_unordered: bool = False


@attrs.define(eq=False, weakref_slot=True)
class Family:
    """Shapes of one request code that differ only in the lengths of what varies: `names` are those of the odd parts.

    `kept` is for the processor of the requests.
    """

    code: int
    names: tuple[Name, ...]
    is_binary: bool
    is_unordered: bool = False
    kept: Any = None

    def place(self, name: Name) -> int:
        """Return the index of a varying part. Raises ValueError if it does not vary."""
        return 2 * self.names.index(name) + 1

    @property
    def property_places(self) -> dict[str, int]:
        """The indexes of the values of properties, by the property's name, in their order."""
        return {name[1]: self.place(name) for name in self.names if isinstance(name, tuple)}


@attrs.define(eq=False, weakref_slot=True)
class Shape:
    """A header in parts, of which the even ones are `fixed`, the odd ones vary. `lengths` are those of all parts.

    Values are as they are in the header. They are not checked: their user does that first.
    """

    family: Family
    fixed: Parts
    lengths: tuple[int, ...]
    run: int = MIN_STREAK
    """The most requests of one length that are cut at a time, twice as many as the last time while all are of the shape.

    Those of the same length behind one of another shape are cut in vain.
    """


@functools.lru_cache(maxsize=1024)
def cutter(lengths: tuple[int, ...], before: int, *behind: int) -> struct.Struct:
    """Return what cuts bytes into parts of these lengths. The first part has some more bytes before it; others are behind."""
    first, *others = lengths
    return texts([before + first, *others, *behind])


@attrs.define(eq=False)
class Streak:
    """Requests of one family, MIN_STREAK to MAX_STREAK, that came one after the other, or with unordered ones between them.

    For each: the parts of its header, and its body. The first part has the head of the frame before it, of `head_bytes`.
    """

    family: Family
    head_bytes: int
    rows: list[Row] = attrs.field(factory=list)
    alike: Columns | None = None
    """The columns of the rows, if the requests have one shape, and bodies of one length."""
    next_try: int = 0
    """The first request that its processor may try to take with others."""
    _vain: int = 0

    def __len__(self) -> int:
        return len(self.rows)

    def add(self, rows: list[Row], columns: Columns | None) -> None:
        """Add requests, with their columns if they are alike."""
        self.alike = None if self.rows else columns
        self.rows += rows

    def tried_in_vain(self, start: int) -> None:
        """Leave the requests from `start` on to be handled one by one: twice as many as after the vain try before."""
        self.next_try = start + (1 << self._vain)
        self._vain += 1

    def columns(self, start: int, stop: int) -> tuple[Columns, bool]:
        """Return the columns of some requests, and whether all values of each column are known to have one length."""
        if self.alike is None:
            return [*zip(*self.rows[start:stop])], False  # noqa: B905
        if not start and stop >= len(self.rows):
            return self.alike, True
        return [column[start:stop] for column in self.alike], True

    def plain(self, index: int) -> RemotingCommand:
        """Return one of the requests as a command. Raises CommandError where a part that varies is not what it has to be."""
        *parts, body = self.rows[index]
        header = b"".join(parts)[self.head_bytes :]
        return decode_binary_command(header, body) if self.family.is_binary else decode_json_command(header, body)


def are_opaques(texts: Sequence[bytes]) -> bool:
    """Return whether all texts are what a JSON header may have as its opaque."""
    return min(texts) >= _LEAST_OPAQUE and b"".join(texts).isdigit()


def are_plain(columns: Iterable[Sequence[bytes]]) -> bool:
    """Return whether all texts consist of PLAIN_BYTES."""
    text = b"".join([*itertools.chain.from_iterable(columns)])
    return text.isalnum() or not text.translate(None, PLAIN_BYTES)


def numbers_of(texts: Sequence[bytes]) -> list[int] | None:
    """Return digits as numbers, each read once: requests of a read often have the same. None if a text has anything else."""
    different = {*texts}
    if not all(map(bytes.isdigit, different)):
        return None
    return [*map({text: int(text) for text in different}.__getitem__, texts)]


def one_by_one(received: Iterable[RemotingCommand | Streak]) -> list[RemotingCommand]:
    """Return all requests as commands. Raises CommandError, see `Streak.plain`."""
    commands: list[RemotingCommand] = []
    for one in received:
        commands += [one.plain(index) for index in range(len(one))] if isinstance(one, Streak) else [one]
    return commands


class Shapes:
    """The shapes of all peers of one server. A shape goes with the last peer that uses it."""

    def __init__(self, by_code: Mapping[int, Varying]) -> None:
        self.by_code = by_code
        self._known: WeakValueDictionary[tuple[int, tuple[int, ...], Parts], Shape] = WeakValueDictionary()
        self._families: WeakValueDictionary[Hashable, Family] = WeakValueDictionary()

    def __len__(self) -> int:
        return len(self._known)

    def of(self, mark: int, header: bytes, command: RemotingCommand) -> Shape | None:
        """Return the shape of a header, None if it cannot have one or there are too many. `command` was read from it."""
        try:
            cuts = _cuts(header, command, self.by_code[command.code])
        except CommandError:  # whoever answers the command says so
            return None
        if cuts is None:
            return None
        names, places = cuts
        parts = _parts(header, places)
        fixed, lengths = parts[::2], tuple(map(len, parts))
        known = self._known.get((mark, lengths, fixed))
        if known is not None or len(self._known) >= MAX_SHAPES:
            return known
        shape = Shape(self._family(command, names, fixed), fixed, lengths)
        self._known[mark, lengths, fixed] = shape
        return shape

    def _family(self, command: RemotingCommand, names: tuple[Name, ...], fixed: Parts) -> Family:
        """Return the family of headers that are the same except for what varies."""
        said: Hashable = fixed
        varying = self.by_code[command.code]
        if command.serialize_type:  # the fixed parts have the lengths of what varies
            vary = {*varying.numbers, *varying.texts}
            same = ((name, value) for name, value in command.ext_fields.items() if name not in vary)
            said = (command.code, command.language, command.version, *_without_values(same, varying, names))
        family = self._families.get((names, said))
        if family is None:
            family = Family(command.code, names, bool(command.serialize_type), varying.is_unordered)
            self._families[names, said] = family
        return family


NO_SHAPES = Shapes({})


class ShapesOfPeer(dict[int, list[Shape]]):
    """The shapes that one peer sends, by the mark of their frames: the latest first, and none if the last header of a mark cannot
    have one. Headers of one mark have different shapes where one value is longer and another one shorter.
    """

    __slots__ = ("_all", "_strangers")

    def __init__(self, shapes: Shapes) -> None:
        super().__init__()
        self._all = shapes
        self._strangers: dict[int, int] = {}

    def learn(self, mark: int, header: bytes, command: RemotingCommand) -> None:
        """Note a header that fitted no shape, and make a shape of it once such headers come again."""
        if len(header) > MAX_HEADER_BYTES:
            return
        seen = self._strangers[mark] = self._strangers.get(mark, 0) + 1
        known = self.get(mark)
        if seen < (2 if known is None else LEARN_EVERY if known else LEARN_AGAIN):
            return
        if len(self._strangers) > MAX_MARKS_OF_PEER:
            self._strangers.clear()
        self._strangers[mark] = 0
        self.pop(mark, None)
        if len(self) >= MAX_MARKS_OF_PEER:
            del self[next(iter(self))]
        shape = self._all.of(mark, header, command)
        self[mark] = [] if shape is None else [shape, *(known or ())][:MAX_SHAPES_OF_MARK]


_FIELD = rb'"([A-Za-z_]{1,64})":"((?:[^"\\]|\\.)*)"'
_EACH_FIELD, _FIELDS = re.compile(_FIELD), re.compile(rb"\{(?:" + _FIELD + rb",?)*\}")
_AROUND = re.compile(
    rb'"(?P<name>code|extFields|flag|language|opaque|remark|serializeTypeCurrentRPC|version)":(?P<value>\d{1,10}|"[A-Z_]*"|)'
)
"""A member of a header whose extFields were taken out."""
_VALUE = re.compile(r"[ !#-\[\]-~]+")
"""The values of properties that may vary: as they are in JSON as in ROCKETMQ headers."""
PLAIN_BYTES = bytes(code for code in range(ord(" "), ord("~") + 1) if chr(code) not in '"\\')
"""The same as bytes: a value with any other is not what the header's text says, or not what a JSON header may have."""
_LEAST_OPAQUE = b"1"
"""The smallest first byte. Smaller numbers begin with 0: either no number in JSON, or 0 itself."""
_ESCAPED_BYTES = len(r"\u0001")
"""The size of a separator of properties in JSON."""
_MOST_DIGITS = 18

Cuts: TypeAlias = tuple[tuple[Name, ...], list[slice]]


def _cuts(header: bytes, command: RemotingCommand, varying: Varying) -> Cuts | None:
    """Return what varies in a header, and where; None if that cannot be told for sure."""
    fields = command.ext_fields
    if command.flag != varying.flag or command.remark or not command.raw_ext_fields:
        return None
    found = _binary_places(header, command) if command.serialize_type else _json_places(header, command)
    if found is None or not fields.keys() <= found.keys():
        return None
    cuts: dict[Name, slice] = {OPAQUE_PART: found[OPAQUE_PART]}
    for name in varying.numbers:
        value = fields.get(name, "")
        if not value.isdecimal() or len(value) > _MOST_DIGITS or header[found[name]] != value.encode():
            return None
        cuts[name] = found[name]
    for name in fields.keys() & varying.texts:
        if not _VALUE.fullmatch(fields[name]) or header[found[name]] != fields[name].encode():
            return None
        cuts[name] = found[name]
    if varying.properties is not None:
        inside = _property_cuts(header, command, varying, found)
        if inside is None:
            return None
        cuts |= inside
    ordered = sorted(cuts.items(), key=lambda item: item[1].start)
    return tuple(name for name, _ in ordered), [place for _, place in ordered]


def _property_cuts(
    header: bytes, command: RemotingCommand, varying: Varying, found: Mapping[str, slice]
) -> dict[Name, slice] | None:
    """Return where the values of properties are; None if that cannot be told for sure."""
    assert varying.properties is not None
    separator_bytes = 1 if command.serialize_type else _ESCAPED_BYTES
    inside = _property_places(command.ext_fields.get(varying.properties, ""), varying, separator_bytes)
    if inside is None:
        return None
    cuts: dict[Name, slice] = {}
    for name, (start, value) in inside.items():
        start += found[varying.properties].start
        place = cuts[varying.properties, name] = slice(start, start + len(value))
        if header[place] != value.encode():
            return None
    return cuts


def _binary_places(header: bytes, command: RemotingCommand) -> dict[str, slice] | None:
    """Return where the values are in a ROCKETMQ header without a remark."""
    raw = bytes(command.raw_ext_fields or b"")
    spans, shift = spans_of(raw), WITHOUT_REMARK.size
    if spans is None or shift + len(raw) != len(header):
        return None
    places = {name.decode(): slice(shift + span.start, shift + span.stop) for name, span in spans.items()}
    return {**places, OPAQUE_PART: OPAQUE_PLACE}


def _json_places(header: bytes, command: RemotingCommand) -> dict[str, slice] | None:
    """Return where the values are in a JSON header that has no members but those of Apache's clients."""
    raw = bytes(command.raw_ext_fields or b"")
    before, _, after = header.partition(raw)
    members = [_AROUND.fullmatch(member) for member in (before + after)[1:-1].split(b",")]
    names = [match["name"] for match in members if match is not None]
    if _FIELDS.fullmatch(raw) is None or len({*names}) != len(members) or b"opaque" not in names:
        return None
    fields = list(_EACH_FIELD.finditer(raw))
    if len({match[1] for match in fields}) != len(fields) or not before.endswith(b'"extFields":'):
        return None
    start = (before + after).index(b'"opaque":') + len(b'"opaque":')
    start += len(raw) if start > len(before) else 0
    stop = start + len(str(command.opaque))
    if header[start:stop] != str(command.opaque).encode():
        return None
    shift = len(before)
    places = {match[1].decode(): slice(shift + match.start(2), shift + match.end(2)) for match in fields}
    return {**places, OPAQUE_PART: slice(start, stop)}


def _property_places(text: str, varying: Varying, separator_bytes: int) -> dict[str, tuple[int, str]] | None:
    """Return where the values that vary begin in the properties' field, and the values; None for properties that are odd."""
    places: dict[str, tuple[int, str]] = {}
    names: set[str] = set()
    position = 0
    for part in text.removesuffix(PROPERTY_SEPARATOR).split(PROPERTY_SEPARATOR):
        name, end, value = part.partition(NAME_VALUE_SEPARATOR)
        usual = bool(end and _VALUE.fullmatch(name) and _VALUE.fullmatch(value))
        if not usual or name in names or name in varying.without:
            return None
        names.add(name)
        start = position + len(name) + separator_bytes
        position = start + len(value) + separator_bytes
        if name not in varying.fixed:
            places[name] = start, value
    return places


def around_values(text: str, varying: Collection[str]) -> list[str]:
    """Return the parts of a text with properties that are before, between and after the values that vary."""
    parts = [""]
    for number, part in enumerate(text.split(PROPERTY_SEPARATOR)):
        name, end, value = part.partition(NAME_VALUE_SEPARATOR)
        parts[-1] += (PROPERTY_SEPARATOR if number else "") + name + end
        if name in varying:
            parts.append("")
        else:
            parts[-1] += value
    return parts


def _without_values(
    fields: Iterable[tuple[str, str]], varying: Varying, names: Collection[Name]
) -> Iterator[tuple[str, Hashable]]:
    """Return the fields, and of properties that vary the names alone."""
    for name, value in fields:
        if name != varying.properties:
            yield name, value
            continue
        pairs = [part.partition(NAME_VALUE_SEPARATOR) for part in value.split(PROPERTY_SEPARATOR)]
        yield name, tuple((one, "" if (name, one) in names else text) for one, _, text in pairs)


def _parts(header: bytes, places: Iterable[slice]) -> Parts:
    """Cut a header into parts that are fixed and vary in turn."""
    parts: list[bytes] = []
    position = 0
    for place in places:
        parts += (header[position : place.start], header[place])
        position = place.stop
    return (*parts, header[position:])
