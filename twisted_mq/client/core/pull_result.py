"""The result of a pull: the messages of the answer, and where to continue."""

from __future__ import annotations

import enum

import attrs

from twisted_mq.logs import Logger
from twisted_mq.protocol.codes import ResponseCode
from twisted_mq.protocol.errors import BrokerError, RecordError
from twisted_mq.protocol.flags import MessageSysFlag
from twisted_mq.protocol.headers import PullMessageResponseHeader
from twisted_mq.protocol.layouts.batch_entry import unwrapped
from twisted_mq.protocol.layouts.plain_messages import decode_plain_messages
from twisted_mq.protocol.layouts.record_codec import decode_message
from twisted_mq.protocol.messages.compression import MAX_BODY_BYTES
from twisted_mq.protocol.messages.message import MessageExt
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.protocol.wire.header_codec import decode_header

log = Logger()


class PullStatus(enum.Enum):
    """The outcome of a pull (Apache: PullStatus)."""

    FOUND = ResponseCode.SUCCESS
    NO_NEW_MSG = ResponseCode.PULL_NOT_FOUND
    NO_MATCHED_MSG = ResponseCode.PULL_RETRY_IMMEDIATELY
    OFFSET_ILLEGAL = ResponseCode.PULL_OFFSET_MOVED


_PULL_STATUS_BY_CODE = {int(status.value): status for status in PullStatus}


@attrs.frozen
class PullResult:
    """The result of a pull. Continue at `next_begin_offset`, at the broker with `suggested_broker_id`."""

    status: PullStatus
    next_begin_offset: int
    min_offset: int
    max_offset: int
    suggested_broker_id: int
    messages: tuple[MessageExt, ...] = ()
    offset_delta: int | None = None
    """Logical queues: add this to the messages' offsets, which are those of the physical queue, to get logical ones."""

    def of_logical(self, queue_id: int) -> PullResult:
        """Return the result with the offsets of the logical queue that was asked for."""
        delta = self.offset_delta or 0
        messages = (
            attrs.evolve(one, queue_id=queue_id, queue_offset=one.queue_offset + delta) for one in self.messages
        )
        return attrs.evolve(self, messages=tuple(messages), offset_delta=None)


def pull_result(answer: RemotingCommand, most_bytes: int = MAX_BODY_BYTES) -> PullResult:
    """Return the pull result of an answer. Raises BrokerError for any code except the four results', RecordError for damage.

    A message whose body cannot be read (marked as compressed but is not, or its CRC is wrong) is skipped with a log line.
    Bodies together have at most `most_bytes`: the rest is for the next pull.
    """
    status = _PULL_STATUS_BY_CODE.get(answer.code)
    if status is None:
        raise BrokerError(answer.code, answer.remark or "")
    header = decode_header(PullMessageResponseHeader, answer)
    records: list[MessageExt] = []
    next_begin_offset = header.next_begin_offset
    if status is PullStatus.FOUND:
        records, following = _records(answer.body, most_bytes)
        if following is not None:
            next_begin_offset = following + (header.offset_delta or 0)
        status = PullStatus.FOUND if records else PullStatus.NO_MATCHED_MSG
    return PullResult(
        status=status,
        next_begin_offset=next_begin_offset,
        min_offset=header.min_offset,
        max_offset=header.max_offset,
        suggested_broker_id=header.suggest_which_broker_id,
        messages=tuple(records),
        offset_delta=header.offset_delta,
    )


def readable_messages(body: bytes) -> list[MessageExt]:
    """Return the messages of a pop's answer; skip unreadable ones with a log line."""
    return _records(body, MAX_BODY_BYTES)[0]


def _records(body: bytes, most_bytes: int) -> tuple[list[MessageExt], int | None]:
    """Return the messages of readable records, and the queue offset of the first that exceeds the limit; None if none does."""
    records: list[MessageExt] = []
    offset, room = 0, most_bytes
    while True:
        plain, offset = decode_plain_messages(body, offset)
        records += plain
        if offset >= len(body):
            return records, None
        room -= sum([len(record.body) for record in plain])
        try:
            record = decode_message(body, offset, max_body_bytes=room)
        except RecordError as error:
            stored = decode_message(body, offset, check_crc=False, decompress=False)
            if room < most_bytes and _is_readable(body, offset, most_bytes):
                return records, stored.queue_offset
            log.warn(
                "message skipped, its body cannot be read: topic={topic} queue={queue} offset={offset} {error}",
                topic=stored.topic, queue=stored.queue_id, offset=stored.queue_offset, error=error,
            )  # fmt: skip
            offset += stored.store_size
            continue
        records += _unwrapped(record) if record.sys_flag & MessageSysFlag.INNER_BATCH_FLAG else [record]
        room -= len(record.body)
        offset += record.store_size


def _is_readable(body: bytes, offset: int, most_bytes: int) -> bool:
    """Return whether the message there is readable in a pull of its own."""
    try:
        decode_message(body, offset, max_body_bytes=most_bytes)
    except RecordError:
        return False
    return True


def _unwrapped(record: MessageExt) -> list[MessageExt]:
    """Return a record's messages. An inner batch is split; one that cannot be is returned whole, as by Apache's client."""
    try:
        return unwrapped(record)
    except RecordError as error:
        log.warn(
            "batch not unpacked: topic={topic} queue={queue} offset={offset} {error}",
            topic=record.topic, queue=record.queue_id, offset=record.queue_offset, error=error,
        )  # fmt: skip
        return [record]
