"""Listens for connections: makes a channel for each, and closes idle ones."""

from __future__ import annotations

from collections.abc import Callable

import attrs
from twisted.internet import interfaces, protocol

from twisted_mq.logs import Logger
from twisted_mq.periodic import PeriodicJob
from twisted_mq.remoting.connection_shares import ConnectionShares
from twisted_mq.remoting.socket_channel import SocketChannel, Traffic


class RemotingServerFactory(protocol.ServerFactory):
    """Makes channels that share one `Traffic`. `channels` has the connected ones, the oldest first.

    Past `max_connections`, a connection of the address with the most gives way to one of an address with fewer, or the
    new one is closed at once. A channel without traffic for `max_idle_seconds` is closed (Apache:
    serverChannelMaxIdleTimeSeconds, 120).
    """

    noisy = False
    log = Logger()

    def __init__(self, traffic: Traffic, max_idle_seconds: float = 120, max_connections: int = 10_000) -> None:
        self.channels: ConnectionShares[SocketChannel] = ConnectionShares(traffic.clock, max_connections)
        self.traffic = attrs.evolve(
            traffic, channel_made=self._channel_made, channel_lost=self._channel_lost, share_moved=self.channels.moved
        )
        self._max_idle_seconds = max_idle_seconds
        self._made, self._lost = traffic.channel_made, traffic.channel_lost
        self._scan: PeriodicJob | None = None
        self.expect: Callable[[SocketChannel], None] | None = None
        """Prepares a new channel for first bytes that may not be a frame (TLS); None if all are frames."""

    def buildProtocol(self, addr: interfaces.IAddress | None) -> SocketChannel | None:
        if not self.channels.has_room(getattr(addr, "host", None)):
            return None
        channel = SocketChannel(self.traffic)
        channel.factory = self
        if self.expect is not None:
            self.expect(channel)
        return channel

    def doStart(self) -> None:
        super().doStart()
        if self._scan is None:
            seconds = max(1.0, self._max_idle_seconds / 4)
            self._scan = PeriodicJob("scan for idle channels", self.traffic.clock, seconds, self.close_idle)

    def doStop(self) -> None:
        super().doStop()
        if self.numPorts == 0 and self._scan is not None:
            self._scan.stop()
            self._scan = None

    def close_idle(self) -> None:
        """Close every channel that has been silent for too long."""
        oldest = self.traffic.clock.seconds() - self._max_idle_seconds
        for channel in [one for one in self.channels if one.last_active < oldest]:
            self.log.info("idle channel closed: peer={peer}", peer=channel.address)
            if self.traffic.count is not None:
                self.traffic.count("IDLE")
            channel.close()

    def close_all(self) -> None:
        """Close every channel, because the server stops."""
        for channel in self.channels:
            channel.close()

    def _channel_made(self, channel: SocketChannel) -> None:
        self.channels.add(channel)
        if self._made is not None:
            self._made(channel)

    def _channel_lost(self, channel: SocketChannel) -> None:
        self.channels.discard(channel)
        if self._lost is not None:
            self._lost(channel)
