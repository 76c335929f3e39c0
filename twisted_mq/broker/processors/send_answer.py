"""Answers to sends: where the message is, or why it is not taken; each names the broker's region."""

from __future__ import annotations

from twisted_mq.config.values import value_text
from twisted_mq.protocol.codes import ResponseCode
from twisted_mq.protocol.errors import BrokerError
from twisted_mq.protocol.headers import SendMessageResponseHeader
from twisted_mq.protocol.layouts.message_id import offset_message_ids
from twisted_mq.protocol.wire.answers import answer_encoder
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.protocol.wire.framing import encode_frame
from twisted_mq.storage.interfaces import InnerMessage, PutResult


class SendAnswers:
    """Encodes answers for one store host (8 or 20 bytes).

    Each names the region (MSG_REGION), and says whether traces are taken (TRACE_ON).
    """

    def __init__(self, store_host: bytes, region: str, *, trace_on: bool = True) -> None:
        self._store_host = store_host
        self._message_id = store_host.hex().upper() + "%016X"
        self._fields = {"MSG_REGION": region, "TRACE_ON": value_text(trace_on)}
        self._encode = answer_encoder(SendMessageResponseHeader, self._fields)

    def sent(
        self,
        command: RemotingCommand,
        message: InnerMessage,
        result: PutResult,
        code: int,
        *,
        queue_id: int | None = None,
        batch_uniq_id: str | None = None,
        recall_handle: str | None = None,
    ) -> bytes:
        """The frame that says where a message (or batch) is; `code` is SUCCESS or a durability that was not reached.

        `queue_id` is the one asked for where that is not the one of the message; the offset is of the message's.
        """
        offsets = result.physical_offsets
        return self._encode(
            command, code, None, 0,
            msg_id=offset_message_ids(self._store_host, offsets) if offsets else self._message_id % result.physical_offset,
            queue_id=message.queue_id if queue_id is None else queue_id,
            queue_offset=result.queue_offset,
            transaction_id=message.property_map.get("UNIQ_KEY", ""),
            batch_uniq_id=batch_uniq_id,
            recall_handle=recall_handle,
        )  # fmt: skip

    def refusal(self, command: RemotingCommand, error: BrokerError) -> bytes:
        """The frame that says why not."""
        fields = {} if error.response_code == ResponseCode.SYSTEM_ERROR else dict(self._fields)
        return encode_frame(command.answer(error.response_code, error.remark, fields))
