"""Answers to sends, encoded. The answer to a plain send is one formatting of a template for its header encoding, that to
a batch with a JSON header too; refusals take the common way. A test holds both ways equal.
"""

from __future__ import annotations

import functools
import struct
from collections.abc import Mapping
from types import MappingProxyType

import attrs

from twisted_mq.config.values import value_text
from twisted_mq.protocol.codes import LANGUAGES, ResponseCode
from twisted_mq.protocol.errors import BrokerError
from twisted_mq.protocol.wire.command import (
    CURRENT_VERSION,
    RESPONSE_FLAG,
    RemotingCommand,
    SerializeType,
    encode_binary_fields,
)
from twisted_mq.protocol.wire.framing import encode_frame
from twisted_mq.storage.interfaces import InnerMessage, PutResult

_JSON = (
    '{"code":0,"extFields":{"MSG_REGION":"%s","TRACE_ON":"%s","msgId":"%s","queueId":"%%d","queueOffset":"%%d",'
    '"transactionId":"%%s"},"flag":1,"language":"PYTHON","opaque":%%d,"serializeTypeCurrentRPC":"JSON","version":%d}'
)


_BINARY_HEAD = struct.Struct(">IIHBHiiII")
_BINARY_HEAD_BYTES = 21
_BINARY_FIELDS = b"%b%016X%b\0\x0bqueueOffset\0\0\0%c%b\0\x0dtransactionId\0\0\0%c%b"
_PYTHON = LANGUAGES.index("PYTHON")
NOTHING_MORE: Mapping[str, str] = MappingProxyType({})


@functools.lru_cache(maxsize=1024)
def _binary_queue(queue_id: int) -> bytes:
    return encode_binary_fields({"queueId": str(queue_id)})


class SendAnswers:
    """Encodes answers for one store host (8 or 20 bytes).

    Each send answer names the region (MSG_REGION), and says whether traces are taken (TRACE_ON).
    """

    def __init__(self, store_host: bytes, region: str, *, trace_on: bool = True) -> None:
        self._id_prefix = store_host.hex().upper()
        trace = value_text(trace_on)
        self._fields = {"MSG_REGION": region, "TRACE_ON": trace}
        region_fits = region.isalnum() and region.isascii()
        self._plain = {SerializeType.JSON: self._json, SerializeType.ROCKETMQ: self._binary} if region_fits else {}
        self._batch = {SerializeType.JSON: self._batch_json} if region_fits else {}
        self._template, self._batch_template = (
            (_JSON % (region, trace, ids, CURRENT_VERSION)).encode() if region_fits else b""
            for ids in (f"{self._id_prefix}%016X", "%b")
        )
        id_length = len(self._id_prefix) + 16
        self._binary_start = encode_binary_fields(self._fields) + b"\0\x05msgId\0\0\0%c%b" % (
            id_length,
            self._id_prefix.encode(),
        )

    def sent(self, command: RemotingCommand, message: InnerMessage, result: PutResult, code: int) -> bytes:
        """The frame that says where a message (or batch) is; `code` is SUCCESS or a durability that was not reached."""
        transaction_id = message.property_map.get("UNIQ_KEY", "")
        if code == 0 and transaction_id.isalnum() and len(transaction_id) < 128 and transaction_id.isascii():
            encode = (self._batch if result.physical_offsets else self._plain).get(command.serialize_type)
            if encode is not None:
                return encode(command.opaque, message.queue_id, result, transaction_id.encode())
        return self.sent_commonly(command, message, result, code)

    def _json(self, opaque: int, queue_id: int, result: PutResult, transaction_id: bytes) -> bytes:
        return self._json_frame(
            self._template % (result.physical_offset, queue_id, result.queue_offset, transaction_id, opaque)
        )

    def _batch_json(self, opaque: int, queue_id: int, result: PutResult, transaction_id: bytes) -> bytes:
        ids = self.message_ids(result).encode()
        return self._json_frame(self._batch_template % (ids, queue_id, result.queue_offset, transaction_id, opaque))

    @staticmethod
    def _json_frame(header: bytes) -> bytes:
        size = len(header)
        return b"%b\0%b%b" % ((size + 4).to_bytes(4, "big"), size.to_bytes(3, "big"), header)

    def _binary(self, opaque: int, queue_id: int, result: PutResult, transaction_id: bytes) -> bytes:
        offset = b"%d" % result.queue_offset
        fields = _BINARY_FIELDS % (
            self._binary_start, result.physical_offset, _binary_queue(queue_id), len(offset), offset,
            len(transaction_id), transaction_id,
        )  # fmt: skip
        size = len(fields) + _BINARY_HEAD_BYTES
        mark = SerializeType.ROCKETMQ << 24 | size
        head = _BINARY_HEAD.pack(size + 4, mark, 0, _PYTHON, CURRENT_VERSION, opaque, RESPONSE_FLAG, 0, len(fields))
        return head + fields

    def sent_elsewhere(
        self,
        command: RemotingCommand,
        message: InnerMessage,
        result: PutResult,
        code: int,
        *,
        queue_id: int,
        recall_handle: str | None,
    ) -> bytes:
        """The answer for a message that was put into another queue than its sender's; the offset is that one's."""
        asked = attrs.evolve(message, queue_id=queue_id)
        return self.sent_commonly(
            command, asked, result, code, {"recallHandle": recall_handle} if recall_handle else {}
        )

    def sent_commonly(
        self,
        command: RemotingCommand,
        message: InnerMessage,
        result: PutResult,
        code: int,
        more: Mapping[str, str] = NOTHING_MORE,
    ) -> bytes:
        """The same answer without a template."""
        transaction_id = message.property_map.get("UNIQ_KEY", "")
        fields = {
            **self._fields,
            "msgId": self.message_ids(result),
            "queueId": str(message.queue_id),
            "queueOffset": str(result.queue_offset),
            "transactionId": transaction_id,
            **more,
        }
        return encode_frame(command.answer(code, None, fields))

    def refusal(self, command: RemotingCommand, error: BrokerError) -> bytes:
        """The frame that says why not."""
        fields = {} if error.response_code == ResponseCode.SYSTEM_ERROR else dict(self._fields)
        return encode_frame(command.answer(error.response_code, error.remark, fields))

    def message_ids(self, result: PutResult) -> str:
        """Offset ids, with commas between those of a batch."""
        offsets = result.physical_offsets or (result.physical_offset,)
        numbers = struct.pack(f">{len(offsets)}Q", *offsets).hex(",", 8).upper()
        return self._id_prefix + numbers.replace(",", f",{self._id_prefix}")
