from __future__ import annotations

import pytest

from twisted_mq.protocol.errors import FrameError
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.protocol.wire.connection import Answered, RemotingConnection
from twisted_mq.protocol.wire.framing import FrameDecoder, encode_frame


def read(data: bytes) -> RemotingCommand:
    (command,) = FrameDecoder().receive_data(data)
    return command


def test_an_answer_is_paired_with_its_request_whatever_the_order() -> None:
    client = RemotingConnection()
    first, second = RemotingCommand.request(1), RemotingCommand.request(2)
    received = [read(client.send(first)), read(client.send(second))]
    answers = [request.answer(body=b"for %d" % request.code) for request in reversed(received)]
    events = client.receive_data(b"".join(map(encode_frame, answers)))
    assert [(event.request, event.answer.body) for event in events if isinstance(event, Answered)] == [
        (second, b"for 2"),
        (first, b"for 1"),
    ]
    assert client.pending == []


def test_requests_are_numbered_from_zero_and_wait_in_order() -> None:
    client = RemotingConnection()
    requests = [RemotingCommand.request(code) for code in (1, 2, 3)]
    for request in requests:
        client.send(request)
    assert [request.opaque for request in requests] == [0, 1, 2]
    assert client.pending == requests


def test_a_one_way_request_waits_for_nothing() -> None:
    client = RemotingConnection()
    sent = read(client.send(RemotingCommand.request(10), one_way=True))
    assert sent.is_one_way
    assert client.pending == []


def test_a_request_of_the_peer_is_given_as_it_is() -> None:
    client = RemotingConnection()
    client.send(RemotingCommand.request(1))
    (notice,) = client.receive_data(encode_frame(RemotingCommand(40, opaque=0, ext_fields={"consumerGroup": "G"})))
    assert isinstance(notice, RemotingCommand)
    assert (notice.code, notice.ext_fields) == (40, {"consumerGroup": "G"})
    assert len(client.pending) == 1


def test_an_answer_that_nobody_waits_for_is_dropped() -> None:
    client = RemotingConnection()
    request = RemotingCommand.request(1)
    data = client.send(request)
    client.forget(request)
    client.forget(request)
    assert client.receive_data(encode_frame(read(data).answer())) == []


def test_the_same_answer_twice_counts_once() -> None:
    client = RemotingConnection()
    answer = encode_frame(read(client.send(RemotingCommand.request(1))).answer())
    assert len(client.receive_data(answer + answer)) == 1


def test_an_answer_may_come_in_pieces() -> None:
    client = RemotingConnection()
    answer = encode_frame(read(client.send(RemotingCommand.request(1))).answer(body=bytes(50)))
    events = [
        event for position in range(len(answer)) for event in client.receive_data(answer[position : position + 1])
    ]
    assert len(events) == 1


def test_a_damaged_stream_is_refused() -> None:
    with pytest.raises(FrameError):
        RemotingConnection().receive_data(bytes(4))


def test_the_limit_is_passed_on() -> None:
    with pytest.raises(FrameError, match="limit is 100"):
        RemotingConnection(max_frame_bytes=100).receive_data((97).to_bytes(4, "big"))
