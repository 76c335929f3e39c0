"""h2's connection as a server of many short calls needs it: no frame costs work for each open stream, an answer is one step.

h2 4.x counts the open streams one by one at each HEADERS frame, drops resets of streams that it has ended, and takes a fifth of a
call to write the three frames of its answer.
"""

from __future__ import annotations

from h2.connection import H2Connection
from h2.events import Event
from h2.stream import StreamClosedBy, StreamState
from hyperframe.frame import Frame, RstStreamFrame

from twisted_mq.protocol.layouts.http2_frame import DATA, END_HEADERS, END_STREAM, HEADERS, frame_head
from twisted_mq.proxy.grpc.answer_headers import AnswerEncoder, Block


class LateReset(Event):
    """A client reset a stream that the server has ended: it did not read the answer, or not all of it."""

    def __init__(self, stream_id: int) -> None:
        self.stream_id = stream_id


class ServerConnection(H2Connection):
    """The same, with streams that are forgotten one by one."""

    def answer(self, stream_id: int, headers: Block, data: bytes | bytearray, trailers: Block) -> bool:
        """Write a whole answer and end its stream, as send_headers, send_data and send_headers would.

        Return False if nothing was written: it does not fit into the windows or a frame, or the client is still sending.
        """
        stream, size = self.streams.get(stream_id), len(data)
        if stream is None or stream.state_machine.state is not StreamState.HALF_CLOSED_REMOTE:
            return False
        room = min(self.outbound_flow_control_window, stream.outbound_flow_control_window)
        if size > room or size > self.max_outbound_frame_size:
            return False
        encoder: AnswerEncoder = self.encoder  # type: ignore[assignment]
        first, last = encoder.encode(headers), encoder.encode(trailers)
        self._data_to_send += b"".join((
            frame_head(len(first), HEADERS, END_HEADERS, stream_id), first,
            frame_head(size, DATA, 0, stream_id), data,
            frame_head(len(last), HEADERS, END_HEADERS | END_STREAM, stream_id), last,
        ))  # fmt: skip
        self.outbound_flow_control_window -= size
        del self.streams[stream_id]
        self._closed_streams[stream_id] = StreamClosedBy.SEND_END_STREAM
        return True

    def release(self, stream_id: int) -> None:
        """Forget a stream if it is closed."""
        stream = self.streams.get(stream_id)
        if stream is not None and stream.closed:
            del self.streams[stream_id]
            self._closed_streams[stream_id] = stream.closed_by

    def _open_streams(self, remainder: int) -> int:
        """Return how many streams are open, or a number that is not below it. Only a full connection is counted through."""
        known = len(self.streams)
        return known if known < self.local_settings.max_concurrent_streams else super()._open_streams(remainder)

    def _receive_rst_stream_frame(self, frame: RstStreamFrame) -> tuple[list[Frame], list[Event]]:
        is_late = frame.stream_id not in self.streams
        frames, events = super()._receive_rst_stream_frame(frame)
        return frames, [*events, LateReset(frame.stream_id)] if is_late else events
