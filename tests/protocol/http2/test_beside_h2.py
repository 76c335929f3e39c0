"""The same frames into h2 and into our connection: the same events, open streams and windows, or both refuse with the same code.

Where ours differs on purpose, `differs` says so, and a test of its own says what it does.
"""

from __future__ import annotations

import pytest
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.errors import ErrorCodes
from h2.events import (
    DataReceived,
    Event,
    PingAckReceived,
    PingReceived,
    PriorityUpdated,
    RemoteSettingsChanged,
    RequestReceived,
    StreamEnded,
    StreamReset,
    UnknownFrameReceived,
    WindowUpdated,
)
from h2.exceptions import ProtocolError
from h2.settings import SettingCodes, Settings
from hpack import Encoder
from hypothesis import event, given, settings
from hypothesis import strategies as st

from twisted_mq.protocol.http2 import events
from twisted_mq.protocol.http2.errors import Http2Error
from twisted_mq.protocol.http2.frame_checks import FRAME_BYTES
from twisted_mq.protocol.http2.server_connection import ServerConnection, ServerSettings
from twisted_mq.protocol.layouts.http2_frame import (
    CONTINUATION,
    DATA,
    END_HEADERS,
    END_STREAM,
    GOAWAY,
    HEADERS,
    PADDED,
    PING,
    PREFACE,
    PRIORITY,
    PRIORITY_PART,
    PUSH_PROMISE,
    RST_STREAM,
    SETTING_PART,
    SETTINGS,
    WINDOW_PART,
    WINDOW_UPDATE,
    WITH_PRIORITY,
    ErrorCode,
    Setting,
    frame,
)

OURS = ServerSettings(streams=3, stream_window=1000, connection_window=2000, header_bytes=500)
Frame = tuple[int, int, int, bytes]
"""Kind, flags, stream and content."""

OTHER_CODES = [
    ["refused", ErrorCode.PROTOCOL_ERROR, "refused", ErrorCode.COMPRESSION_ERROR],  # RFC 9113, 4.3
    ["refused", ErrorCode.PROTOCOL_ERROR, "refused", ErrorCode.FRAME_SIZE_ERROR],  # RFC 9113, 4.2
    ["refused", ErrorCode.FRAME_SIZE_ERROR, "refused", ErrorCode.PROTOCOL_ERROR],  # in a header block
    ["refused", ErrorCode.ENHANCE_YOUR_CALM, "refused", ErrorCode.PROTOCOL_ERROR],  # too many headers, on no stream
]
"""Refusals with different codes, that of h2 and ours: ours is that of the RFC, or the frame is wrong in both ways."""

REQUEST = [(":method", "POST"), (":path", "/a"), ("x", "y" * 30)]
BLOCKS = st.one_of(
    st.sampled_from([b"\x83\x84", b"\x83\x40\x01a\x01b", b"\xbe", b"", b"\x20\x83", Encoder().encode(REQUEST)]),
    st.binary(max_size=12),
    st.integers(400, 600).map(
        lambda size: b"\x00\x01a\x7f" + bytes([size - 127 & 127 | 128, size - 127 >> 7]) + b"v" * size
    ),
)
SMALL = st.one_of(st.binary(max_size=6), st.sampled_from([400, 700, 1000, 1001]).map(bytes))
SIZES = st.sampled_from([0, 1, 2, 500, 65_535, 2**31 - 1, 2**31, 2**32 - 1])
STREAMS = st.sampled_from([*[1, 1, 3, 5] * 6, 7, 7, 9, 2, 0])


def some(
    kind: int, flags: list[int], streams: st.SearchStrategy[int], content: st.SearchStrategy[bytes]
) -> st.SearchStrategy[Frame]:
    """Frames of one kind."""
    return st.tuples(st.just(kind), st.sampled_from(flags), streams, content)


def padded(content: st.SearchStrategy[bytes]) -> st.SearchStrategy[bytes]:
    """Contents with a length of padding that fits or not."""
    return st.tuples(st.integers(0, 5), content).map(lambda pair: bytes([pair[0]]) + pair[1])


FLAGS = [END_HEADERS, END_HEADERS, END_HEADERS | END_STREAM, END_HEADERS | END_STREAM, 0, END_STREAM]
DEPENDS = st.tuples(STREAMS, st.integers(0, 255)).map(lambda pair: PRIORITY_PART.pack(*pair))
ZERO = st.sampled_from([0, 0, 0, 0, 1])
FRAMES = st.one_of(
    some(HEADERS, FLAGS, STREAMS, BLOCKS),
    some(HEADERS, FLAGS, STREAMS, BLOCKS),
    some(HEADERS, [one | PADDED for one in FLAGS], STREAMS, padded(BLOCKS)),
    some(HEADERS, [one | WITH_PRIORITY for one in FLAGS], STREAMS, st.tuples(DEPENDS, BLOCKS).map(b"".join)),
    some(CONTINUATION, [END_HEADERS, 0], STREAMS, BLOCKS),
    some(DATA, [0, END_STREAM], STREAMS, SMALL),
    some(DATA, [0, END_STREAM], STREAMS, SMALL),
    some(DATA, [PADDED, PADDED | END_STREAM], STREAMS, padded(SMALL)),
    some(PRIORITY, [0], STREAMS, st.one_of(DEPENDS, st.binary(max_size=6))),
    some(RST_STREAM, [0], STREAMS, st.one_of(st.just(b"\0\0\0\x08"), st.binary(max_size=5))),
    some(
        SETTINGS,
        [0],
        ZERO,
        st.lists(st.tuples(st.integers(0, 9), SIZES), max_size=3).map(
            lambda found: b"".join(SETTING_PART.pack(*one) for one in found)
        ),
    ),
    some(SETTINGS, [0, 1], ZERO, st.sampled_from([b"", b"", b"\0"])),
    some(PUSH_PROMISE, [END_HEADERS], STREAMS, st.just(b"\0\0\0\2\x83")),
    some(PING, [0, 1], ZERO, st.sampled_from([b"12345678", b"1234567"])),
    some(WINDOW_UPDATE, [0], STREAMS, st.one_of(SIZES.map(WINDOW_PART.pack), st.binary(max_size=5))),
    some(WINDOW_UPDATE, [0], st.just(0), st.just(WINDOW_PART.pack(1000))),
    some(GOAWAY, [0], ZERO, st.sampled_from([b"\0\0\0\1\0\0\0\0", b"\0\0\0\1\0\0\0\2debug", b"\0"])),
    st.tuples(st.integers(11, 255), st.integers(0, 255), STREAMS, st.binary(max_size=5)),
)
ANSWERS = st.tuples(st.sampled_from(["answer", "headers", "reset"]), st.sampled_from([1, 3, 5]), st.integers(0, 100))
BEGUN: Frame = (HEADERS, END_HEADERS, 1, b"\x83\x84")
STARTS = st.sampled_from([[], [BEGUN], [BEGUN, (HEADERS, END_HEADERS | END_STREAM, 3, b"\x83\x84")]])
STEPS = st.tuples(STARTS, st.lists(st.one_of(FRAMES, FRAMES, FRAMES, ANSWERS), max_size=25)).map(
    lambda two: two[0] + two[1]
)


class Both:
    """h2's connection and ours."""

    def __init__(self) -> None:
        self.h2 = H2Connection(
            H2Configuration(
                client_side=False,
                header_encoding=False,
                validate_inbound_headers=False,
                normalize_inbound_headers=False,
            )
        )
        self.h2.local_settings = Settings(
            client=False,
            initial_values={
                SettingCodes.MAX_CONCURRENT_STREAMS: OURS.streams,
                SettingCodes.INITIAL_WINDOW_SIZE: OURS.stream_window,
                SettingCodes.MAX_HEADER_LIST_SIZE: OURS.header_bytes,
            },
        )
        self.h2.initiate_connection()
        self.h2.increment_flow_control_window(OURS.connection_window)
        self.h2.decoder.max_header_list_size = OURS.header_bytes
        self.ours = ServerConnection(OURS)
        start = PREFACE + frame(SETTINGS, 0, 0)
        assert self.theirs_of(start) == self.ours_of(start)

    def theirs_of(self, data: bytes) -> list[object]:
        """Return h2's events in our words, or its error."""
        try:
            found = self.h2.receive_data(data)
        except ProtocolError as error:
            return ["refused", int(error.error_code)]
        mapped: list[object] = []
        in_request = any(isinstance(one, RequestReceived) for one in found)
        for one in found:
            if isinstance(one, DataReceived) and one.flow_controlled_length and one.stream_id in self.h2.streams:
                self.h2.acknowledge_received_data(one.flow_controlled_length, one.stream_id)
            if not (in_request and isinstance(one, PriorityUpdated)):
                mapped += theirs(one)
        return mapped

    def ours_of(self, data: bytes) -> list[object]:
        """Return our events, or the error."""
        try:
            found = self.ours.receive(data)
        except Http2Error as error:
            return ["refused", int(error.code)]
        return [part for one in found for part in our_words(one)]

    def open_streams(self) -> tuple[dict[int, int], dict[int, int]]:
        """Return the windows of the open streams of both."""
        open_of_h2 = {number: one for number, one in self.h2.streams.items() if not one.closed}
        return (
            {number: one.outbound_flow_control_window for number, one in open_of_h2.items()},
            {number: one.room for number, one in self.ours.streams.items()},
        )


def theirs(one: Event) -> list[object]:
    """Return an event of h2 in our words."""
    kinds: dict[type[Event], str] = {
        PingReceived: "ping", RemoteSettingsChanged: "settings", UnknownFrameReceived: "unknown", PriorityUpdated: "priority",
    }  # fmt: skip
    if type(one) in kinds:
        return [kinds[type(one)]]
    if isinstance(one, RequestReceived):
        return [("request", one.stream_id, [(bytes(name), bytes(value)) for name, value in one.headers])]
    if isinstance(one, DataReceived):
        return [("data", one.stream_id, one.data)]
    if isinstance(one, StreamEnded):
        return [("ended", one.stream_id)]
    if isinstance(one, StreamReset):
        return [("reset", one.stream_id, not one.remote_reset)]
    if isinstance(one, WindowUpdated):
        return [("window", one.stream_id)]
    return [("answered", one.ping_data)] if isinstance(one, PingAckReceived) else []


def our_words(one: events.Event) -> list[object]:
    """Return an event of ours as `theirs` does."""
    kinds: dict[type[events.Event], str] = {
        events.PingReceived: "ping", events.SettingsReceived: "settings", events.UnknownFrame: "unknown",
        events.PriorityReceived: "priority",
    }  # fmt: skip
    if type(one) in kinds:
        return [kinds[type(one)]]
    if isinstance(one, (events.RequestReceived, events.DataReceived)):
        first = (
            ("request", one.stream_id, one.headers)
            if isinstance(one, events.RequestReceived)
            else ("data", one.stream_id, one.data)
        )
        return [first, ("ended", one.stream_id)] if one.ended else [first]
    if isinstance(one, events.RequestEnded):
        return [("ended", one.stream_id)]
    if isinstance(one, events.StreamReset):
        return [("reset", one.stream_id, one.provoked)]
    if isinstance(one, events.WindowGrew):
        return [("window", one.stream_id)]
    return [("answered", one.content)] if isinstance(one, events.PingAnswered) else []


def differs(both: Both, one: Frame) -> bool:
    """Return whether ours treats this frame otherwise on purpose."""
    kind, flags, stream_id, content = one
    ours = both.ours
    if kind == HEADERS and flags & PADDED and len(content) > 1 and content[0] == len(content) - 1:
        return True  # nothing but padding: h2 refuses it in HEADERS and takes it in DATA, RFC 9113 allows both
    is_open = stream_id in ours.streams
    was_open = stream_id & 1 and stream_id <= ours.highest_stream_id
    if kind == WINDOW_UPDATE and content[:1] >= b"\x80":
        return True  # h2 refuses the reserved bit, RFC 9113 says to ignore it
    if kind == HEADERS and flags & WITH_PRIORITY and is_open:
        return (
            True  # a stream that depends on itself: ours looks at that first, h2 at what the stream may still receive
        )
    if kind == GOAWAY:
        return True  # h2 takes nothing more, ours goes on with the open streams
    if ours._block is not None:
        return False
    if kind == RST_STREAM and not is_open:
        return True  # h2 ignores one for a stream that was never opened
    return kind in (DATA, HEADERS, CONTINUATION) and not is_open and bool(was_open)  # how it was closed counts


@settings(max_examples=400, deadline=None)
@given(STEPS)
def test_frames_are_read_as_by_h2(steps):
    both = Both()
    for count, step in enumerate(steps):
        if isinstance(step[0], str):
            answer(both, *step)
        else:
            if differs(both, step):
                event("differs")
                both.ours_of(frame(*step))
                return
            data = frame(*step)
            expected, found = both.theirs_of(data), both.ours_of(data)
            if [*expected, *found] in OTHER_CODES or (found[:1] == ["refused"] and waits_in_h2(step)):
                return
            assert found == expected, step
            if expected[:1] == ["refused"]:
                event(f"refused {'later' if count else 'at once'}: {ErrorCode(expected[1]).name}")
                return
        theirs_open, ours_open = both.open_streams()
        assert ours_open == theirs_open, step
        assert both.ours.room == both.h2.outbound_flow_control_window
    event("all taken")


def waits_in_h2(one: Frame) -> bool:
    """Return whether h2 looks at this frame when the last part of its header block comes; ours refuses at once."""
    kind, flags, _, _ = one
    return kind in (HEADERS, CONTINUATION) and not flags & END_HEADERS


def answer(both: Both, how: str, stream_id: int, size: int) -> None:
    """Answer on a stream that is open at both."""
    stream = both.ours.streams.get(stream_id)
    if stream is None:
        return
    if how == "reset":
        both.ours.reset(stream_id, ErrorCode.CANCEL)
        both.h2.reset_stream(stream_id, ErrorCodes.CANCEL)
    elif how == "headers":
        both.ours.send_headers(stream_id, ((b":status", b"405"),), end=True)
        both.h2.send_headers(stream_id, [(":status", "405")], end_stream=True)
        if not stream.ended:
            both.h2.reset_stream(stream_id, ErrorCodes.NO_ERROR)
    elif both.ours.answer(stream_id, ((b":status", b"200"),), bytes(size), ((b"grpc-status", b"0"),)):
        both.h2.send_headers(stream_id, [(":status", "200")])
        both.h2.send_data(stream_id, bytes(size))
        both.h2.send_headers(stream_id, [("grpc-status", "0")], end_stream=True)


def test_reserved_bits_are_ignored():
    connection = opened(CALL)
    room = connection.room_of(1)
    head = bytearray(frame(WINDOW_UPDATE, 0, 1, b"\x80\0\0\x05"))
    head[5] |= 0x80
    assert connection.receive(bytes(head)) == [events.WindowGrew(1)]
    assert (connection.streams[1].room, room) == (65_540, FRAME_BYTES)


@settings(max_examples=200, deadline=None)
@given(STEPS, st.data())
def test_cuts_between_reads_change_nothing(steps, data):
    """The events are the same wherever the bytes are cut."""
    sent = PREFACE + frame(SETTINGS, 0, 0) + b"".join(frame(*one) for one in steps if not isinstance(one[0], str))
    whole, pieces = ServerConnection(OURS), ServerConnection(OURS)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(sent)), max_size=6)))
    expected = read(whole, [sent])
    found = read(pieces, [sent[begin:end] for begin, end in zip([0, *cuts], [*cuts, len(sent)], strict=True)])
    if expected[1] is None:
        assert found[0] == expected[0]
    assert found[1:] == expected[1:]
    assert pieces.to_send() == whole.to_send()


def read(connection: ServerConnection, pieces: list[bytes]) -> tuple[list[events.Event], ErrorCode | None]:
    """Return the events, and the error that ends them."""
    found: list[events.Event] = []
    for one in pieces:
        try:
            found += connection.receive(one)
        except Http2Error as error:
            return found, error.code
    return found, None


def opened(*frames: bytes) -> ServerConnection:
    """A connection that has taken these frames, with nothing to send."""
    connection = ServerConnection(OURS)
    connection.receive(PREFACE + frame(SETTINGS, 0, 0) + b"".join(frames))
    connection.to_send()
    return connection


CALL = frame(HEADERS, END_HEADERS, 1, b"\x83\x84")
ENDED = frame(HEADERS, END_HEADERS | END_STREAM, 1, b"\x83\x84")
RESET = frame(RST_STREAM, 0, 1, b"\0\0\0\x08")


@pytest.mark.parametrize(
    ("before", "sent", "code"),
    [
        ([], RESET, ErrorCode.PROTOCOL_ERROR),
        ([CALL], frame(RST_STREAM, 0, 3, b"\0\0\0\x08"), ErrorCode.PROTOCOL_ERROR),
        ([CALL, RESET], CALL, ErrorCode.STREAM_CLOSED),
        ([frame(HEADERS, END_HEADERS, 5, b"\x83")], CALL, ErrorCode.STREAM_CLOSED),
    ],
)
def test_frame_ends_the_connection_with_its_code(before, sent, code):
    connection = opened(*before)
    with pytest.raises(Http2Error) as refused:
        connection.receive(sent)
    assert refused.value.code == code


def test_first_frame_must_be_settings():
    for first in (CALL, frame(SETTINGS, 1, 0), frame(PING, 0, 0, b"12345678")):
        with pytest.raises(Http2Error):
            ServerConnection(OURS).receive(PREFACE + first)


def test_streams_go_on_after_the_clients_goaway():
    connection = opened(CALL, frame(GOAWAY, 0, 0, bytes(8)))
    assert connection.receive(frame(DATA, END_STREAM, 1, b"x")) == [events.DataReceived(1, b"x", True)]
    assert connection.answer(1, (), b"y", ())


def test_what_comes_after_the_servers_reset_is_dropped_and_its_headers_are_read():
    connection = opened(CALL)
    connection.reset(1, ErrorCode.CANCEL)
    connection.to_send()
    late = frame(HEADERS, END_HEADERS | END_STREAM, 1, b"\x40\x01a\x01b")
    assert connection.receive(frame(DATA, 0, 1, b"x") + late) == []
    assert connection.to_send() == b""
    (request,) = connection.receive(frame(HEADERS, END_HEADERS, 3, b"\xbe"))
    assert request.headers == [(b"a", b"b")]


def test_data_on_a_closed_stream_is_answered_by_a_counted_reset():
    connection = opened(ENDED)
    assert connection.answer(1, (), b"", ())
    connection.to_send()
    assert connection.receive(frame(DATA, 0, 1, b"x")) == [events.StreamReset(1, provoked=True)]
    assert connection.to_send() == frame(RST_STREAM, 0, 1, b"\0\0\0\x05")


def test_late_reset_of_an_answered_stream_is_told():
    connection = opened(ENDED)
    assert connection.answer(1, (), b"", ())
    assert connection.receive(RESET) == [events.LateReset(1)]


def test_windows_are_given_back_before_they_are_empty():
    connection = opened(CALL)
    given_back = {0: 0, 1: 0}
    for _ in range(200):
        connection.receive(frame(DATA, 0, 1, bytes(400)))
        sent = connection.to_send()
        for at in range(0, len(sent), 13):
            stream_id = int.from_bytes(sent[at + 5 : at + 9], "big")
            given_back[stream_id] += int.from_bytes(sent[at + 9 : at + 13], "big")
    assert 80_000 - 500 <= given_back[1] <= 80_000
    assert 80_000 - 33_768 <= given_back[0] <= 80_000


def test_client_that_ignores_the_windows_is_refused():
    connection = opened(CALL)
    with pytest.raises(Http2Error) as refused:
        connection.receive(frame(DATA, 0, 1, bytes(1001)))
    assert refused.value.code == ErrorCode.FLOW_CONTROL_ERROR


def test_headers_in_many_frames_are_bounded_in_frames_and_bytes():
    for content, most, code in ((b"", 65, ErrorCode.PROTOCOL_ERROR), (bytes(1000), 3, ErrorCode.ENHANCE_YOUR_CALM)):
        connection = opened(frame(HEADERS, 0, 1))
        with pytest.raises(Http2Error) as refused:
            for sent in range(most):  # noqa: B007
                connection.receive(frame(CONTINUATION, 0, 1, content))
        assert (sent, refused.value.code) == (most - 1, code)


@pytest.mark.parametrize(("ours", "theirs"), [(ErrorCode, ErrorCodes), (Setting, SettingCodes)])
def test_numbers_are_those_of_h2(ours, theirs):
    assert {one.name: int(one) for one in ours} == {one.name: int(one) for one in theirs}
