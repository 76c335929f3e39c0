"""Errors of HTTP/2."""

from __future__ import annotations

from twisted_mq.protocol.layouts.http2_frame import ErrorCode


class Http2Error(Exception):
    """The client broke the protocol. Its connection ends with a GOAWAY of this code."""

    def __init__(self, code: ErrorCode, text: str) -> None:
        super().__init__(f"{code.name}: {text}")
        self.code = code


class HeaderBlockError(Http2Error):
    """A header block that cannot be read. Both sides' tables of headers differ from here on."""

    def __init__(self, text: str) -> None:
        super().__init__(ErrorCode.COMPRESSION_ERROR, text)


class HeadersTooLarge(Http2Error):
    """Headers of a request that take more than the limit."""

    def __init__(self, most: int) -> None:
        super().__init__(ErrorCode.ENHANCE_YOUR_CALM, f"headers have more than {most} bytes")
