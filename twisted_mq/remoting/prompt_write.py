"""Writing to the socket at once. Twisted's `write` waits for the reactor's next turn and for two epoll_ctl calls: that is a
fifth of what a single send costs, and the peer waits for it.
"""

from __future__ import annotations

from twisted.internet.tcp import Connection

from twisted_mq.remoting.transport import Transport


def write_promptly(transport: Transport, data: bytes) -> None:
    """Hand `data` to the socket now where nothing waits before it; what the socket does not take is buffered as ever.

    So is what it would not take in one piece, not to be copied. Other transports than a plain connection (tests, TLS
    and whatever wraps one) get all by `write`. A broken connection is found out by the reactor, as after `write`.
    """
    if (
        not isinstance(transport, Connection)
        or transport.TLS
        or transport._tempDataBuffer
        or transport.dataBuffer
        or len(data) > transport.SEND_LIMIT
    ):
        transport.write(data)
        return
    sent = transport.writeSomeData(data)
    if sent != len(data):
        transport.write(data[sent:] if isinstance(sent, int) and sent > 0 else data)
