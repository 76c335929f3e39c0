"""A fast way from the extFields of ROCKETMQ headers to values: what recurs is compared, only what varies is read.

A peer sends the same fields in the same order, and most of them with the same values: a producer's sends differ in queue,
time and properties. So of the extFields of each length one is remembered, with the values that were read from it, as a
template. The next ones of that length are compared with it in one operation, in all bytes but those of the values that
were seen to vary. Where they are equal, only these are cut out and converted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Generic, TypeVar

import attrs
import msgspec

from twisted_mq.protocol.wire.extfields import Spans, spans_of

MAX_TEMPLATE_BYTES = 1024
"""Longer extFields have no template."""

MAX_TEMPLATES = 64
"""Lengths that are remembered at a time: some 300 KB at most."""

LEARN_EVERY = 8
"""Once there is no room, or the fields of a length lie elsewhere, one stranger of so many gives a new template."""


Made = TypeVar("Made", bound=msgspec.Struct)


@attrs.frozen(eq=False)
class Template(Generic[Made]):
    """`raw & mask == fixed`, as big-endian integers, holds for all extFields that `read` takes.

    `read` raises ValueError for a value that has to be read by field.
    """

    raw: bytes
    spans: Spans
    varying: frozenset[bytes]
    mask: int
    fixed: int
    read: Callable[[bytes], Made]


def _number(text: bytes) -> int:
    if not text.isdigit():
        raise ValueError("not digits alone")
    return int(text)


class FieldTemplates(Generic[Made]):
    """Remembers extFields of one header class by length; None for those that no template helps with.

    `make` is the class of what is read, a msgspec.Struct; `attributes` says which of its attributes a field's value is,
    `digits` how many digits a number may have that fits in any case, 0 for a text. Fields without digits are only read
    where they do not vary.
    """

    def __init__(self, make: type[Made], attributes: Mapping[bytes, str], digits: Mapping[bytes, int]) -> None:
        self._make = make
        self._attributes = attributes
        self._digits = digits
        self._strangers = 0
        self.by_length: dict[int, Template[Made] | None] = {}

    def learn(self, raw: bytes, header: Made) -> None:
        """Remember extFields that were read as `header` without error, and that fitted no template."""
        self._strangers += 1
        if len(raw) > MAX_TEMPLATE_BYTES:
            return
        known, spans = self.by_length.get(len(raw)), spans_of(raw)
        varying: frozenset[bytes] = frozenset()
        if known is not None and spans == known.spans:
            varying = known.varying.union(name for name, span in known.spans.items() if raw[span] != known.raw[span])
        elif (len(raw) in self.by_length or len(self.by_length) == MAX_TEMPLATES) and self._strangers % LEARN_EVERY:
            return
        elif len(raw) not in self.by_length and len(self.by_length) == MAX_TEMPLATES:
            del self.by_length[next(iter(self.by_length))]
        self.by_length[len(raw)] = self._template(raw, spans, varying, header) if spans is not None else None

    def _template(self, raw: bytes, spans: Spans, varying: frozenset[bytes], header: Made) -> Template[Made] | None:
        """Return a template; None if a varying value cannot be read from its bytes alone."""
        mask = bytearray(b"\xff" * len(raw))
        for name in varying:
            span = spans[name]
            mask[span] = bytes(span.stop - span.start)
            digits = self._digits.get(name)
            if name in self._attributes and (digits is None or 0 < digits < span.stop - span.start):
                return None
        bits = int.from_bytes(mask, "big")
        return Template(
            raw, spans, varying, bits, int.from_bytes(raw, "big") & bits, self._reader(spans, varying, header)
        )

    def _reader(self, spans: Spans, varying: frozenset[bytes], header: Made) -> Callable[[bytes], Made]:
        """Return a function of the raw fields that reads the varying ones; the others are the header's."""
        names = self._make.__struct_fields__
        make, constants = self._make, [getattr(header, name) for name in names]
        read = [
            (names.index(self._attributes[name]), spans[name], _number if self._digits[name] else bytes.decode)
            for name in varying & self._attributes.keys()
        ]

        def reader(raw: bytes) -> Made:
            values = constants.copy()
            for place, span, convert in read:
                values[place] = convert(raw[span])
            return make(*values)

        return reader
