"""The static table of headers (RFC 7541, appendix A), and the sizes of the dynamic one."""

from __future__ import annotations

from twisted_mq.protocol.http2.events import Pair

ENTRY_BYTES = 32
"""The size of an entry without its name and value (RFC 7541, 4.1)."""
TABLE_BYTES = 4096
"""The size of the dynamic table if no setting changes it."""

_VALUED: tuple[tuple[str, tuple[str, ...]], ...] = (
    (":authority", ("",)), (":method", ("GET", "POST")), (":path", ("/", "/index.html")), (":scheme", ("http", "https")),
    (":status", ("200", "204", "206", "304", "400", "404", "500")), ("accept-charset", ("",)),
    ("accept-encoding", ("gzip, deflate",)),
)  # fmt: skip
_NAMES = """
    accept-language accept-ranges accept access-control-allow-origin age allow authorization cache-control content-disposition
    content-encoding content-language content-length content-location content-range content-type cookie date etag expect expires
    from host if-match if-modified-since if-none-match if-range if-unmodified-since last-modified link location max-forwards
    proxy-authenticate proxy-authorization range referer refresh retry-after server set-cookie strict-transport-security
    transfer-encoding user-agent vary via www-authenticate
"""

STATIC: tuple[Pair, ...] = (
    (b"", b""),
    *((name.encode(), value.encode()) for name, values in _VALUED for value in values),
    *((name.encode(), b"") for name in _NAMES.split()),
)
"""The entries by their numbers, which begin with 1. The dynamic table's follow."""
