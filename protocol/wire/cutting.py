"""Cuts a stream into the bytes of its frames, without taking them apart."""

from __future__ import annotations

from twisted_mq.protocol.errors import FrameError
from twisted_mq.protocol.wire.framing import LENGTH_BYTES, frame_bytes


class FrameCutter:
    """Keeps one incomplete frame. `failed`: what is in `held` begins with no frame, and neither does what follows."""

    def __init__(self) -> None:
        self.failed = False
        self._held = bytearray()

    @property
    def held(self) -> bytes:
        """Return the bytes that are not a whole frame yet."""
        return bytes(self._held)

    def receive_data(self, data: bytes) -> list[bytes]:
        """Return the frames that are whole with `data`, each after its length."""
        held = self._held
        held += data
        found: list[bytes] = []
        position = 0
        while len(held) - position >= LENGTH_BYTES:
            try:
                size = frame_bytes(bytes(held[position : position + LENGTH_BYTES]), position)
            except FrameError:
                self.failed = True
                break
            if len(held) - position < size:
                break
            found.append(bytes(held[position : position + size]))
            position += size
        del held[:position]
        return found
