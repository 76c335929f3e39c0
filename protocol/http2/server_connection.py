"""The server's side of an HTTP/2 connection: bytes in, events out, and the frames of answers.

No frame costs work for each open stream, but a SETTINGS frame that changes their windows. What a client sends is given back to
its windows as it comes: the caller bounds what it keeps. Not read are `content-length` (gRPC's messages have their own lengths),
the names and values of headers beyond HPACK's rules, and priorities.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping

import attrs

from twisted_mq.protocol.http2.errors import Http2Error
from twisted_mq.protocol.http2.events import (
    DataReceived,
    Event,
    GoAwayReceived,
    LateReset,
    Pair,
    PingAnswered,
    PingReceived,
    PriorityReceived,
    RequestEnded,
    RequestReceived,
    SettingsReceived,
    StreamReset,
    UnknownFrame,
    WindowGrew,
)
from twisted_mq.protocol.http2.frame_checks import (
    FRAME_BYTES,
    MOST_WINDOW,
    check_connection,
    check_priority,
    check_setting,
    check_size,
    unpadded,
)
from twisted_mq.protocol.http2.header_decoder import HeaderDecoder
from twisted_mq.protocol.http2.header_encoder import Block, HeaderEncoder
from twisted_mq.protocol.layouts.http2_frame import (
    ACK,
    CONTINUATION,
    DATA,
    END_HEADERS,
    END_STREAM,
    GOAWAY,
    GOAWAY_PART,
    HEAD,
    HEADERS,
    PADDED,
    PING,
    PING_PART,
    PREFACE,
    PRIORITY,
    PRIORITY_PART,
    PUSH_PROMISE,
    RESET_PART,
    RST_STREAM,
    SETTING_PART,
    SETTINGS,
    STREAM_BITS,
    WINDOW_PART,
    WINDOW_UPDATE,
    WITH_PRIORITY,
    ErrorCode,
    Setting,
    frame,
    frame_head,
)

WINDOW = 65_535
"""The size of every window at the start."""
MOST_CONTINUATIONS = 64
"""The limit of CONTINUATION frames behind one HEADERS frame (CVE-2024-27316)."""
BLOCK_FACTOR = 4
"""A header block has at most this many times the bytes that its headers may have: HPACK makes no text longer than that."""
MOST_RESETS = 1000
"""The number of the server's newest resets that are remembered: what the client still sends there is dropped."""
_head = HEAD.unpack_from


@attrs.frozen(kw_only=True)
class ServerSettings:
    """The settings that the server sends. They hold from the first frame on."""

    streams: int
    stream_window: int
    connection_window: int
    """The bytes that the window of all streams together has beyond its size at the start."""
    header_bytes: int

    def frames(self) -> bytes:
        """Return the server's first frames."""
        values = {
            Setting.MAX_CONCURRENT_STREAMS: self.streams,
            Setting.INITIAL_WINDOW_SIZE: self.stream_window,
            Setting.MAX_HEADER_LIST_SIZE: self.header_bytes,
        }
        settings = b"".join(SETTING_PART.pack(number, value) for number, value in values.items())
        return frame(SETTINGS, 0, 0, settings) + frame(WINDOW_UPDATE, 0, 0, WINDOW_PART.pack(self.connection_window))


@attrs.define
class Stream:
    """An open stream. `room` is what the client takes, `taken` what it has sent since its window grew last."""

    room: int
    taken: int = 0
    ended: bool = False
    """True if the client has sent the whole request."""


@attrs.define
class _Block:
    """A header block that is not complete."""

    stream_id: int
    flags: int
    content: bytearray
    continuations: int = 0


class ServerConnection:
    """The server's side of a connection. `streams` are the open ones, `room` is what the client takes on all of them together."""

    def __init__(self, settings: ServerSettings, repeated: Block = ()) -> None:
        self._settings = settings
        self._decoder = HeaderDecoder(settings.header_bytes)
        self._encoder = HeaderEncoder(repeated)
        self.streams: dict[int, Stream] = {}
        self.highest_stream_id = 0
        self.room = WINDOW
        self.most_frame_bytes = FRAME_BYTES
        """The limit of a sent frame."""
        self._first_room = WINDOW
        """The client's window of a new stream."""
        self._window = WINDOW + settings.connection_window
        self._taken = 0
        self._resets: dict[int, None] = {}
        self._block: _Block | None = None
        self._receive: Callable[[], bool] = self._preface
        self._buffer = b""
        self._events: list[Event] = []
        self._out: list[bytes] = [settings.frames()]

    # what the client sends

    def receive(self, data: bytes) -> list[Event]:
        """Take bytes, and return what has come with them. Raises Http2Error; the connection is of no further use then."""
        if self._buffer:
            data = self._buffer + data
        self._buffer = data
        events: list[Event] = []
        self._events = events
        while self._receive():
            pass
        return events

    def _preface(self) -> bool:
        """Read what every client begins with."""
        size = len(PREFACE)
        if not PREFACE.startswith(self._buffer[:size]):
            raise Http2Error(ErrorCode.PROTOCOL_ERROR, "the connection does not begin as HTTP/2 does")
        if len(self._buffer) < size:
            return False
        self._buffer = self._buffer[size:]
        self._receive = self._first_frame
        return True

    def _first_frame(self) -> bool:
        """Check that the first frame is SETTINGS."""
        if len(self._buffer) < HEAD.size:
            return False
        _, _, kind, flags, _ = _head(self._buffer)
        if kind != SETTINGS or flags & ACK:
            raise Http2Error(ErrorCode.PROTOCOL_ERROR, "the first frame is not SETTINGS")
        self._receive = self._frames
        return True

    def _frames(self) -> bool:
        """Read the frames that are complete."""
        data, at = self._buffer, 0
        end = len(data)
        while end - at >= HEAD.size:
            high, low, kind, flags, stream_id = _head(data, at)
            length = high << 16 | low
            if length > FRAME_BYTES:
                raise Http2Error(ErrorCode.FRAME_SIZE_ERROR, f"frame of {length} bytes, the limit is {FRAME_BYTES}")
            begin = at + HEAD.size
            if begin + length > end:
                break
            at = begin + length
            if self._block is not None and kind != CONTINUATION:
                raise Http2Error(ErrorCode.PROTOCOL_ERROR, "a header block is interrupted")
            receive = _RECEIVED.get(kind)
            if receive is None:
                self._events.append(UnknownFrame())
            else:
                receive(self, flags, stream_id & STREAM_BITS, data[begin:at])
        self._buffer = data[at:]
        return False

    def _headers(self, flags: int, stream_id: int, content: bytes) -> None:
        if flags & (PADDED | WITH_PRIORITY):
            content = unpadded(flags, content)
            if flags & WITH_PRIORITY:
                check_priority(stream_id, content[: PRIORITY_PART.size])
                content = content[PRIORITY_PART.size :]
        if not stream_id & 1:
            raise Http2Error(ErrorCode.PROTOCOL_ERROR, f"HEADERS on stream {stream_id}")
        if flags & END_HEADERS:
            self._headers_complete(stream_id, flags, content)
        else:
            self._block = _Block(stream_id, flags, bytearray(content))

    def _continuation(self, flags: int, stream_id: int, content: bytes) -> None:
        block = self._block
        if block is None or block.stream_id != stream_id:
            raise Http2Error(ErrorCode.PROTOCOL_ERROR, f"CONTINUATION on stream {stream_id} continues nothing")
        block.content += content
        block.continuations += 1
        if block.continuations > MOST_CONTINUATIONS:
            raise Http2Error(ErrorCode.PROTOCOL_ERROR, f"more than {MOST_CONTINUATIONS} CONTINUATION frames")
        if len(block.content) > BLOCK_FACTOR * self._settings.header_bytes:
            raise Http2Error(ErrorCode.ENHANCE_YOUR_CALM, f"header block of more than {len(block.content)} bytes")
        if flags & END_HEADERS:
            self._block = None
            self._headers_complete(stream_id, block.flags, bytes(block.content))

    def _headers_complete(self, stream_id: int, flags: int, block: bytes) -> None:
        stream = self.streams.get(stream_id)
        ended = flags & END_STREAM != 0
        if stream is not None:
            self._decoder.decode(block)
            self._trailers(stream_id, stream, ended)
            return
        if stream_id <= self.highest_stream_id:
            self._decoder.decode(block)  # later blocks need its entries
            if stream_id not in self._resets:
                raise Http2Error(ErrorCode.STREAM_CLOSED, f"HEADERS on stream {stream_id}, which is closed")
            return
        if len(self.streams) >= self._settings.streams:
            raise Http2Error(ErrorCode.PROTOCOL_ERROR, f"more than {self._settings.streams} open streams")
        headers: list[Pair] = self._decoder.decode(block)
        self.highest_stream_id = stream_id
        self.streams[stream_id] = Stream(self._first_room, 0, ended)
        self._events.append(RequestReceived(stream_id, headers, ended))

    def _trailers(self, stream_id: int, stream: Stream, ended: bool) -> None:
        if stream.ended:
            self._provoked(stream_id, ErrorCode.STREAM_CLOSED)
        elif not ended:
            raise Http2Error(ErrorCode.PROTOCOL_ERROR, f"trailers of stream {stream_id} do not end it")
        else:
            stream.ended = True
            self._events.append(RequestEnded(stream_id))

    def _data(self, flags: int, stream_id: int, content: bytes) -> None:
        size = len(content)
        taken = self._taken + size  # never above the window: half of it is given back, and that is more than a frame
        if 2 * taken >= self._window:
            self._out.append(frame(WINDOW_UPDATE, 0, 0, WINDOW_PART.pack(taken)))
            taken = 0
        self._taken = taken
        if flags & PADDED:
            content = unpadded(flags, content)
        stream = self.streams.get(stream_id)
        if stream is None:
            self._check_was_open(stream_id, "DATA")
            if stream_id not in self._resets:
                self._provoked(stream_id, ErrorCode.STREAM_CLOSED)
            return
        if stream.ended:
            self._provoked(stream_id, ErrorCode.STREAM_CLOSED)
            return
        taken = stream.taken + size
        window = self._settings.stream_window
        if taken > window:
            raise Http2Error(ErrorCode.FLOW_CONTROL_ERROR, f"more data than the window of stream {stream_id}")
        if flags & END_STREAM:
            stream.ended = True
            self._events.append(DataReceived(stream_id, content, True))
            return
        if 2 * taken >= window:
            self._out.append(frame(WINDOW_UPDATE, 0, stream_id, WINDOW_PART.pack(taken)))
            taken = 0
        stream.taken = taken
        self._events.append(DataReceived(stream_id, content))

    def _priority(self, flags: int, stream_id: int, content: bytes) -> None:
        if not stream_id:
            raise Http2Error(ErrorCode.PROTOCOL_ERROR, "PRIORITY without a stream")
        check_size("PRIORITY", content, PRIORITY_PART.size)
        check_priority(stream_id, content)
        self._events.append(PriorityReceived())

    def _rst_stream(self, flags: int, stream_id: int, content: bytes) -> None:
        check_size("RST_STREAM", content, RESET_PART.size)
        if self.streams.pop(stream_id, None) is not None:
            self._events.append(StreamReset(stream_id))
        else:
            self._check_was_open(stream_id, "RST_STREAM")
            self._events.append(LateReset(stream_id))

    def _settings_received(self, flags: int, stream_id: int, content: bytes) -> None:
        check_connection("SETTINGS", stream_id)
        if flags & ACK:
            check_size("answer to SETTINGS", content, 0)
            return
        if len(content) % SETTING_PART.size:
            raise Http2Error(ErrorCode.FRAME_SIZE_ERROR, f"SETTINGS of {len(content)} bytes")
        for number, value in dict(SETTING_PART.iter_unpack(content)).items():
            self._take_setting(number, value)
        self._out.append(frame(SETTINGS, ACK, 0))
        self._events.append(SettingsReceived())

    def _take_setting(self, number: int, value: int) -> None:
        check_setting(number, value)
        if number == Setting.INITIAL_WINDOW_SIZE:
            more, self._first_room = value - self._first_room, value
            for stream in self.streams.values():
                stream.room += more
                if stream.room > MOST_WINDOW:
                    raise Http2Error(ErrorCode.FLOW_CONTROL_ERROR, "the window of a stream is too large")
        elif number == Setting.MAX_FRAME_SIZE:
            self.most_frame_bytes = value
        elif number == Setting.HEADER_TABLE_SIZE:
            self._encoder.limit_table(value)

    def _push_promise(self, flags: int, stream_id: int, content: bytes) -> None:
        raise Http2Error(ErrorCode.PROTOCOL_ERROR, "PUSH_PROMISE of a client")

    def _ping(self, flags: int, stream_id: int, content: bytes) -> None:
        check_connection("PING", stream_id)
        check_size("PING", content, PING_PART.size)
        if flags & ACK:
            self._events.append(PingAnswered(content))
            return
        self._out.append(frame(PING, ACK, 0, content))
        self._events.append(PingReceived())

    def _goaway(self, flags: int, stream_id: int, content: bytes) -> None:
        check_connection("GOAWAY", stream_id)
        if len(content) < GOAWAY_PART.size:
            raise Http2Error(ErrorCode.FRAME_SIZE_ERROR, f"GOAWAY of {len(content)} bytes")
        _, code = GOAWAY_PART.unpack_from(content)
        self._events.append(GoAwayReceived(code))

    def _window_update(self, flags: int, stream_id: int, content: bytes) -> None:
        check_size("WINDOW_UPDATE", content, WINDOW_PART.size)
        (more,) = WINDOW_PART.unpack(content)
        more &= STREAM_BITS
        if not more:
            raise Http2Error(ErrorCode.PROTOCOL_ERROR, f"WINDOW_UPDATE of nothing on stream {stream_id}")
        if not stream_id:
            self.room += more
            if self.room > MOST_WINDOW:
                raise Http2Error(ErrorCode.FLOW_CONTROL_ERROR, "the connection's window is too large")
            self._events.append(WindowGrew(0))
            return
        stream = self.streams.get(stream_id)
        if stream is None:
            self._check_was_open(stream_id, "WINDOW_UPDATE")
            return
        stream.room += more
        if stream.room > MOST_WINDOW:
            self._provoked(stream_id, ErrorCode.FLOW_CONTROL_ERROR)
            return
        self._events.append(WindowGrew(stream_id))

    def _check_was_open(self, stream_id: int, kind: str) -> None:
        """Raise Http2Error for a stream that the client has not opened."""
        if stream_id > self.highest_stream_id or not stream_id & 1:
            raise Http2Error(ErrorCode.PROTOCOL_ERROR, f"{kind} on stream {stream_id}, which is not open")

    def _provoked(self, stream_id: int, code: ErrorCode) -> None:
        """Reset a stream because of a frame on it."""
        self.streams.pop(stream_id, None)
        self._out.append(frame(RST_STREAM, 0, stream_id, RESET_PART.pack(code)))
        self._events.append(StreamReset(stream_id, True))

    # what the server sends

    def to_send(self) -> bytes:
        """Return the frames that were written since the last time."""
        out = self._out
        if not out:
            return b""
        self._out = []
        return b"".join(out)

    def room_of(self, stream_id: int) -> int:
        """Return how many bytes may be sent on a stream now in one frame: 0 or less if none, or if it is closed."""
        stream = self.streams.get(stream_id)
        return 0 if stream is None else min(self.room, stream.room, self.most_frame_bytes)

    def answer(self, stream_id: int, headers: Block, data: bytes | bytearray, trailers: Block) -> bool:
        """Write a whole answer and end its stream.

        Return False if nothing was written: it does not fit into the windows or a frame, or the client is still sending.
        """
        stream, size = self.streams.get(stream_id), len(data)
        if stream is None or not stream.ended or size > min(self.room, stream.room, self.most_frame_bytes):
            return False
        first, last = self._encoder.encode(headers), self._encoder.encode(trailers)
        if len(first) > self.most_frame_bytes or len(last) > self.most_frame_bytes:
            return False
        number = RESET_PART.pack(stream_id)
        self._out.append(_answer_form(first, size, last) % (number, number, data, number))
        self.room -= size
        del self.streams[stream_id]
        return True

    def send_headers(self, stream_id: int, headers: Block, end: bool = False) -> bool:
        """Write a header block. With `end` it ends the stream, and a client that is still sending gets a reset.

        Return False if the stream is closed.
        """
        stream = self.streams.get(stream_id)
        if stream is None:
            return False
        block, most = self._encoder.encode(headers), self.most_frame_bytes
        first, rest = block[:most], [block[at : at + most] for at in range(most, len(block), most)]
        flags = END_STREAM if end else 0
        self._out.append(frame(HEADERS, flags if rest else flags | END_HEADERS, stream_id, first))
        for place, piece in enumerate(rest, 1):
            self._out.append(frame(CONTINUATION, END_HEADERS if place == len(rest) else 0, stream_id, piece))
        if not end:
            return True
        if stream.ended:
            del self.streams[stream_id]
        else:
            self.reset(stream_id, ErrorCode.NO_ERROR)
        return True

    def send_data(self, stream_id: int, data: bytes) -> None:
        """Write data. Raises ValueError if it is more than `room_of` allows."""
        if len(data) > self.room_of(stream_id):
            raise ValueError(f"{len(data)} bytes on stream {stream_id}, there is room for {self.room_of(stream_id)}")
        self.room -= len(data)
        self.streams[stream_id].room -= len(data)
        self._out += (frame_head(len(data), DATA, 0, stream_id), data)

    def reset(self, stream_id: int, code: ErrorCode) -> None:
        """Close a stream at once. A closed one stays as it is."""
        if self.streams.pop(stream_id, None) is None:
            return
        self._out.append(frame(RST_STREAM, 0, stream_id, RESET_PART.pack(code)))
        self._resets[stream_id] = None
        if len(self._resets) > MOST_RESETS:
            del self._resets[next(iter(self._resets))]

    def ping(self, content: bytes) -> None:
        """Ask the client for an answer with these 8 bytes."""
        self._out.append(frame(PING, 0, 0, PING_PART.pack(content)))

    def go_away(self, code: ErrorCode, last_stream_id: int, reason: bytes = b"") -> None:
        """Tell the client which streams are still answered."""
        self._out.append(frame(GOAWAY, 0, 0, GOAWAY_PART.pack(last_stream_id, code) + reason))


@functools.lru_cache(maxsize=1024)
def _answer_form(first: bytes, size: int, last: bytes) -> bytes:
    """Return the format of a whole answer: three times its stream, with the data before the last one."""
    pieces = (
        _without_stream(len(first), HEADERS, END_HEADERS),
        first + _without_stream(size, DATA, 0),
        b"",
        _without_stream(len(last), HEADERS, END_HEADERS | END_STREAM),
        last,
    )
    return b"%b".join(one.replace(b"%", b"%%") for one in pieces)


def _without_stream(length: int, kind: int, flags: int) -> bytes:
    """Return a frame's head up to its stream."""
    return frame_head(length, kind, flags, 0)[:-4]


_RECEIVED: Mapping[int, Callable[[ServerConnection, int, int, bytes], None]] = {
    DATA: ServerConnection._data,
    HEADERS: ServerConnection._headers,
    PRIORITY: ServerConnection._priority,
    RST_STREAM: ServerConnection._rst_stream,
    SETTINGS: ServerConnection._settings_received,
    PUSH_PROMISE: ServerConnection._push_promise,
    PING: ServerConnection._ping,
    GOAWAY: ServerConnection._goaway,
    WINDOW_UPDATE: ServerConnection._window_update,
    CONTINUATION: ServerConnection._continuation,
}
