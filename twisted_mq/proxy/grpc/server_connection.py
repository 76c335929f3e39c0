"""h2's connection as a server of many streams needs it: no frame costs work for each open stream.

h2 4.x counts the open streams one by one at each HEADERS frame, and drops resets of streams that it has ended.
"""

from __future__ import annotations

from h2.connection import H2Connection
from h2.events import Event
from hyperframe.frame import Frame, RstStreamFrame


class LateReset(Event):
    """A client reset a stream that the server has ended: it did not read the answer, or not all of it."""

    def __init__(self, stream_id: int) -> None:
        self.stream_id = stream_id


class ServerConnection(H2Connection):
    """The same, with streams that are forgotten one by one."""

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
