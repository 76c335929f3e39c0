"""Keeps clients on the proxy: replaces addresses of brokers in answers about routes by listeners that forward to them."""

from __future__ import annotations

import re
from collections.abc import Callable

from twisted.internet import interfaces

from twisted_mq.protocol.codes import RequestCode
from twisted_mq.protocol.errors import ProtocolError
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.protocol.wire.framing import FrameDecoder, with_body
from twisted_mq.recording.proxy import ProxyFactory
from twisted_mq.remoting.listen import bind, listen

ROUTES = frozenset({int(RequestCode.GET_ROUTEINFO_BY_TOPIC), int(RequestCode.GET_BROKER_CLUSTER_INFO)})
"""Requests whose answers contain addresses of brokers."""
_ADDRESS = re.compile(rb'"((?:[\w.-]+|\[[0-9a-fA-F:]+\]):[0-9]{1,5})"')
LOOPBACK = "127.0.0.1"


class RouteRewrite:
    """Changes the addresses in one connection's answers to ROUTES, and nothing else."""

    def __init__(self, proxy_of: Callable[[str], str]) -> None:
        self._proxy_of = proxy_of
        self._asked: set[int] = set()

    def __call__(self, from_client: bool, frame: bytes) -> bytes:
        if not from_client and not self._asked:
            return frame
        command = _decoded(frame)
        if command is None:
            return frame
        if from_client:
            if command.code in ROUTES and not command.is_response:
                self._asked.add(command.opaque)
            return frame
        if not command.is_response or command.opaque not in self._asked:
            return frame
        self._asked.discard(command.opaque)
        return with_body(frame, _ADDRESS.sub(self._replaced, command.body))

    def _replaced(self, found: re.Match[bytes]) -> bytes:
        return b'"%s"' % self._proxy_of(found[1].decode()).encode()


def _decoded(frame: bytes) -> RemotingCommand | None:
    """Return the command; None for a frame that cannot be parsed, which is forwarded unchanged."""
    try:
        (command,) = FrameDecoder().receive_data(frame)
    except (ProtocolError, ValueError):
        return None
    return command


class Advertised:
    """The listeners on loopback, one for each server that an answer named, opened when it is first named."""

    def __init__(
        self, reactor: interfaces.IReactorSocket, factory_for: Callable[[tuple[str, int]], ProxyFactory]
    ) -> None:
        self._reactor = reactor
        self._factory_for = factory_for
        self._ports: dict[str, int] = {}

    def proxy_of(self, address: str) -> str:
        """Return the proxy's address to use instead of this one."""
        if address not in self._ports:
            host, _, port = address.rpartition(":")
            factory = self._factory_for((host.strip("[]"), int(port)))
            bound = bind(LOOPBACK, 0)
            self._ports[address] = bound.getsockname()[1]
            listen(self._reactor, bound, factory)
        return f"{LOOPBACK}:{self._ports[address]}"
