"""Results of answers to pulls, also with wrong bodies."""

from __future__ import annotations

import zlib

import pytest

from twisted_mq.client.core.pull_result import PullResult, PullStatus, pull_result
from twisted_mq.protocol.codes import ResponseCode
from twisted_mq.protocol.errors import RecordError
from twisted_mq.protocol.headers import PullMessageResponseHeader
from twisted_mq.protocol.layouts.host import pack_host
from twisted_mq.protocol.layouts.record_codec import encode_record
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.protocol.wire.header_codec import encode_header

HOST = pack_host("127.0.0.1", 10911)
COMPRESSED = 1


def record(queue_offset: int, body: bytes, sys_flag: int = 0) -> bytes:
    return encode_record(b"T", body, b"", 0, queue_offset, 0, 1, HOST, 2, HOST, sys_flag=sys_flag)


def pulled(*records: bytes, most_bytes: int = 1000, offset_delta: int | None = None) -> PullResult:
    header = PullMessageResponseHeader(
        suggest_which_broker_id=0, next_begin_offset=99, min_offset=0, max_offset=99, offset_delta=offset_delta
    )
    answer = RemotingCommand(ResponseCode.SUCCESS, ext_fields=encode_header(header), body=b"".join(records))
    return pull_result(answer, most_bytes)


def test_a_body_that_is_not_compressed_as_it_says_is_passed_by_with_a_line(caplog: pytest.LogCaptureFixture) -> None:
    result = pulled(record(5, b"a"), record(6, b"no zlib", COMPRESSED), record(7, zlib.compress(b"c"), COMPRESSED))
    assert [(one.queue_offset, one.body) for one in result.messages] == [(5, b"a"), (7, b"c")]
    assert (result.status, result.next_begin_offset) == (PullStatus.FOUND, 99)
    (line,) = caplog.messages
    assert "topic=T queue=0 offset=6" in line


def test_a_pull_of_nothing_readable_matched_nothing() -> None:
    result = pulled(record(6, b"no zlib", COMPRESSED))
    assert (result.status, result.messages, result.next_begin_offset) == (PullStatus.NO_MATCHED_MSG, (), 99)


def test_what_bodies_become_is_bounded_and_the_rest_is_pulled_again() -> None:
    bomb = zlib.compress(bytes(700))
    result = pulled(record(5, bomb, COMPRESSED), record(6, bomb, COMPRESSED), record(7, b"c"))
    assert ([one.queue_offset for one in result.messages], result.next_begin_offset) == ([5], 6)


def test_a_body_that_alone_becomes_too_much_is_passed_by() -> None:
    result = pulled(record(5, zlib.compress(bytes(5000)), COMPRESSED), record(6, b"b"))
    assert [one.queue_offset for one in result.messages] == [6]


def test_bytes_that_are_no_records_are_an_error() -> None:
    with pytest.raises(RecordError):
        pulled(record(5, b"a")[:-1])


def test_of_a_logical_queue_messages_have_its_id_and_its_offsets() -> None:
    bomb = zlib.compress(bytes(700))
    result = pulled(record(5, bomb, COMPRESSED), record(6, bomb, COMPRESSED), offset_delta=100)
    assert (result.next_begin_offset, result.offset_delta) == (106, 100)
    (message,) = result.of_logical(7).messages
    assert (message.queue_id, message.queue_offset) == (7, 105)
