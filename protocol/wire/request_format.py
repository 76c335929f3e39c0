"""Makes frames of requests quickly that differ in a few header fields: what is the same in all of them is encoded once.

A frame equals what `encode_frame` makes of the same request byte by byte: a test compares them.
"""

from __future__ import annotations

import attrs
import msgspec

from twisted_mq.protocol.headers.fields import FieldKind
from twisted_mq.protocol.wire.command import RemotingCommand, encode_json_header
from twisted_mq.protocol.wire.framing import HEAD
from twisted_mq.protocol.wire.header_codec import encode_header
from twisted_mq.protocol.wire.header_fields import wire_fields

encode_text = msgspec.json.Encoder().encode
"""A text as a frame takes it for an open field."""

_OPAQUE = b'"opaque":%d,'
_FORMS = {FieldKind.TEXT: b"%b", FieldKind.INT32: b'"%d"', FieldKind.INT64: b'"%d"'}


class RequestFormat:
    """The requests of one code whose headers are `header` except for the open fields. Their header encoding is JSON."""

    def __init__(self, code: int, header: attrs.AttrsInstance, *open_fields: str) -> None:
        """Create a format. `open_fields` are attributes that are not None in the header, in the order of their names on
        the wire.
        """
        names = {field.attribute: field for field in wire_fields(type(header))}
        fields = encode_header(header)
        marks = {}
        for attribute in open_fields:
            field = names[attribute]
            mark = fields[field.wire] = f"\0{field.wire}\0"
            marks[encode_text(mark)] = _FORMS[field.kind]
        form = encode_json_header(RemotingCommand.request(code, fields)).replace(b"%", b"%%")
        for quoted, placeholder in marks.items():
            form = form.replace(quoted, placeholder)
        self._form = form.replace(_OPAQUE % 0, _OPAQUE)

    def frame(self, body: bytes, values: tuple[int | bytes, ...], opaque: int) -> bytes:
        """Make a request; `values` are of the open fields, a text as `encode_text` has it."""
        header = self._form % (*values, opaque)
        size = len(header)
        return b"".join((HEAD.pack(4 + size + len(body), size), header, body))
