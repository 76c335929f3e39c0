"""What a pull brought: the messages of the answer, and where to go on."""

from __future__ import annotations

import enum
from collections.abc import Iterator

import attrs

from twisted_mq.logs import Logger
from twisted_mq.protocol.codes import ResponseCode
from twisted_mq.protocol.errors import BrokerError, RecordError
from twisted_mq.protocol.headers import PullMessageResponseHeader
from twisted_mq.protocol.layouts.batch_entry import unwrapped
from twisted_mq.protocol.layouts.record_codec import iterate_messages
from twisted_mq.protocol.messages.message import MessageExt
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.protocol.wire.header_codec import decode_header

log = Logger()


class PullStatus(enum.Enum):
    """How a pull ended (Apache: PullStatus)."""

    FOUND = ResponseCode.SUCCESS
    NO_NEW_MSG = ResponseCode.PULL_NOT_FOUND
    NO_MATCHED_MSG = ResponseCode.PULL_RETRY_IMMEDIATELY
    OFFSET_ILLEGAL = ResponseCode.PULL_OFFSET_MOVED


_PULL_STATUS_BY_CODE = {int(status.value): status for status in PullStatus}


@attrs.frozen
class PullResult:
    """What a pull brought, and where to go on: `next_begin_offset`, at the broker with `suggested_broker_id`."""

    status: PullStatus
    next_begin_offset: int
    min_offset: int
    max_offset: int
    suggested_broker_id: int
    messages: tuple[MessageExt, ...] = ()


def pull_result(answer: RemotingCommand) -> PullResult:
    """The pull result of an answer. Raises BrokerError for any code but the four results', RecordError for damage."""
    status = _PULL_STATUS_BY_CODE.get(answer.code)
    if status is None:
        raise BrokerError(answer.code, answer.remark or "")
    header = decode_header(PullMessageResponseHeader, answer)
    found = status is PullStatus.FOUND
    return PullResult(
        status=status,
        next_begin_offset=header.next_begin_offset,
        min_offset=header.min_offset,
        max_offset=header.max_offset,
        suggested_broker_id=header.suggest_which_broker_id,
        messages=tuple(_messages(answer.body)) if found else (),
    )


def _messages(body: bytes) -> Iterator[MessageExt]:
    """The messages of an answer, inner batches taken apart; one that cannot be is given whole, as by Apache's client."""
    for record in iterate_messages(body):
        try:
            yield from unwrapped(record)
        except RecordError as error:
            log.warn(
                "batch not taken apart: topic={topic} queue={queue} offset={offset} {error}",
                topic=record.topic, queue=record.queue_id, offset=record.queue_offset, error=error,
            )  # fmt: skip
            yield record
