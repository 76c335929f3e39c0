"""Answers to sends, many at a time: those to headers that have shapes are made by one formatting for all, and read by columns.

They equal what `answers.answer_encoder` makes byte by byte, and what `header_codec.fast_header` reads; tests hold them equal.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import repeat
from types import MappingProxyType
from typing import Any, TypeAlias

import attrs

from twisted_mq.protocol.codes import ResponseCode
from twisted_mq.protocol.headers import SendMessageResponseHeader
from twisted_mq.protocol.layouts.message_id import offset_message_id_pattern
from twisted_mq.protocol.wire.command import (
    CURRENT_VERSION,
    LANGUAGE_CODES,
    OPAQUE_PLACE,
    RESPONSE_FLAG,
    WITHOUT_REMARK,
    RemotingCommand,
    SerializeType,
    encode_json_header,
)
from twisted_mq.protocol.wire.extfields import binary_name, encode_binary_fields, value_length
from twisted_mq.protocol.wire.framing import HEAD
from twisted_mq.protocol.wire.header_fields import wire_fields
from twisted_mq.protocol.wire.shapes import PLAIN_BYTES, Streak, Varying

MAX_FORMS = 256
"""Formats that are kept, of some hundred bytes each."""
Texts: TypeAlias = Sequence[bytes]
Values: TypeAlias = Mapping[str, tuple[bytes, int]]
"""The fields that differ: the format of the value, and how many bytes it makes."""

_MESSAGE_ID, _QUEUE_ID, _QUEUE_OFFSET, _TRANSACTION_ID, _, _RECALL_HANDLE = (
    field.wire for field in wire_fields(SendMessageResponseHeader)
)


@attrs.frozen(eq=False)
class SentAnswers:
    """Encodes the answers to sends whose headers have one encoding. `always` are fields of every answer."""

    store_host: bytes
    always: Mapping[str, str]
    serialize_type: int
    _forms: dict[tuple[int, ...], bytes] = attrs.field(factory=dict)

    def encode(
        self,
        code: int,
        opaques: Texts,
        physical_offsets: Sequence[int],
        queue_ids: Texts,
        queue_offsets: Sequence[int],
        unique_keys: Texts,
        handles: Texts | None = None,
        *,
        alike: bool = False,
    ) -> bytes:
        """Return the frames of the answers with this response code, one for each queue offset.

        Opaques and queue ids are as the requests have them. `handles` recall the messages. `alike` says that the values of
        each column of the requests have one length, and so have the handles.
        """
        count, keys = len(queue_offsets), (unique_keys,) if handles is None else (unique_keys, handles)
        alike = alike or all(len({*map(len, texts)}) == 1 for texts in (opaques, queue_ids, *keys))
        if alike and _digits(min(queue_offsets)) == _digits(max(queue_offsets)):
            first = len(opaques[0]), len(queue_ids[0]), _digits(queue_offsets[0])
            form = self._form(code, *first, *[len(texts[0]) for texts in keys]) * count
        else:
            each = map(len, opaques), map(len, queue_ids), map(_digits, queue_offsets)
            rows = zip(*each, *[map(len, texts) for texts in keys])  # noqa: B905
            form = b"".join([self._form(code, *lengths) for lengths in rows])
        columns: list[Sequence[Any]] = [physical_offsets, queue_ids, queue_offsets, *keys]
        if not self.serialize_type:  # JSON has the names in alphabetical order
            columns[3:] = keys[::-1]
        columns.insert(0 if self.serialize_type else len(columns), opaques)
        values: list[Any] = [None] * (count * len(columns))
        for place, column in enumerate(columns):
            values[place :: len(columns)] = column[:count]
        return form % (*values,)

    def _form(self, code: int, *lengths: int) -> bytes:
        """Return the format of answers whose values have these lengths."""
        form = self._forms.get((code, *lengths))
        if form is None:
            if len(self._forms) >= MAX_FORMS:
                self._forms.clear()
            form = self._forms[code, *lengths] = self._new_form(code, *lengths)
        return form

    def _new_form(
        self, code: int, opaque: int, queue_id: int, queue_offset: int, unique_key: int, handle: int | None = None
    ) -> bytes:
        message_id = offset_message_id_pattern(self.store_host)
        values = {
            _MESSAGE_ID: (message_id.encode(), len(message_id % 0)),
            _QUEUE_ID: (b"%b", queue_id),
            _QUEUE_OFFSET: (b"%d", queue_offset),
            _TRANSACTION_ID: (b"%b", unique_key),
        }
        if handle is not None:
            values[_RECALL_HANDLE] = (b"%b", handle)
        return self._binary_form(code, values) if self.serialize_type else self._json_form(code, opaque, values)

    def _json_form(self, code: int, opaque_length: int, values: Values) -> bytes:
        marks = {name: f"<{name}>" for name in values}
        command = RemotingCommand(code, flag=RESPONSE_FLAG, ext_fields={**self.always, **marks})
        header = encode_json_header(command)
        form = _literal(header)
        size = len(header) - len(b"0") + opaque_length
        for name, mark in marks.items():
            value, length = values[name]
            form = form.replace(mark.encode(), value)
            size += length - len(mark)
        form = form.replace(b'"opaque":0,', b'"opaque":%b,')
        return _literal(HEAD.pack(4 + size, size)) + form

    def _binary_form(self, code: int, values: Values) -> bytes:
        fields = _literal(encode_binary_fields(self.always))
        for name, (value, length) in values.items():
            fields += _literal(binary_name(name) + value_length(length)) + value
        size = len(
            encode_binary_fields({**self.always, **{name: " " * length for name, (_, length) in values.items()}})
        )
        header = WITHOUT_REMARK.pack(
            code & 0xFFFF, LANGUAGE_CODES["PYTHON"], CURRENT_VERSION, 0, RESPONSE_FLAG, 0, size
        )
        before, after = header[: OPAQUE_PLACE.start], header[OPAQUE_PLACE.stop :]
        head = HEAD.pack(4 + len(header) + size, SerializeType.ROCKETMQ << 24 | len(header) + size)
        return _literal(head + before) + b"%b" + _literal(after) + fields


def _digits(number: int) -> int:
    """Return the number of a number's digits."""
    return len(b"%d" % number)


def _literal(data: bytes) -> bytes:
    """Return data as a part of a format."""
    return data.replace(b"%", b"%%")


# Answers that come together

SENT_ANSWERS: Mapping[int, Varying] = MappingProxyType(
    {
        int(ResponseCode.SUCCESS): Varying(
            (_QUEUE_ID, _QUEUE_OFFSET), texts=(_MESSAGE_ID, _TRANSACTION_ID), flag=RESPONSE_FLAG
        )
    }
)
"""The parts that vary in the answers of a broker that stored messages."""
SentRow: TypeAlias = tuple[str, int, int, str | None]
"""Message id, queue id, queue offset and transaction id of one answer."""


def read_sent(streak: Streak) -> list[SentRow] | None:
    """Return what varies in answers of one shape; None if a value has to be read by itself.

    A row equals what `header_codec.fast_header` reads from the same answer; a test holds them equal.
    """
    family = streak.family
    if _MESSAGE_ID not in family.names:
        return None
    columns, _ = streak.columns(0, len(streak))
    ids, queues, offsets = (columns[family.place(name)] for name in (_MESSAGE_ID, _QUEUE_ID, _QUEUE_OFFSET))
    transactions = columns[family.place(_TRANSACTION_ID)] if _TRANSACTION_ID in family.names else ()
    if not b"".join([*queues, *offsets]).isdigit() or b"".join([*ids, *transactions]).translate(None, PLAIN_BYTES):
        return None
    queue_ids = [*map(int, queues)]
    if max(queue_ids) >= 1 << 31:
        return None
    texts = map(bytes.decode, transactions) if transactions else repeat(None)
    return [*zip(map(bytes.decode, ids), queue_ids, map(int, offsets), texts)]  # noqa: B905
