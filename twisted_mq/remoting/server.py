"""The listening side: a channel for each connection, and the scan that closes idle ones."""

from __future__ import annotations

from collections.abc import Callable

import attrs
from twisted.internet import interfaces, protocol

from twisted_mq.logs import Logger
from twisted_mq.periodic import PeriodicJob
from twisted_mq.remoting.channel import Channel, Traffic


class RemotingServerFactory(protocol.ServerFactory):
    """Makes channels that share one `Traffic`. `channels` holds those that are connected, the oldest first.

    Connections past `max_connections` are closed at once. A channel without traffic for `max_idle_seconds` is closed
    (Apache: serverChannelMaxIdleTimeSeconds, 120).
    """

    noisy = False
    log = Logger()

    def __init__(self, traffic: Traffic, max_idle_seconds: float = 120, max_connections: int = 10_000) -> None:
        self.traffic = attrs.evolve(traffic, channel_made=self._channel_made, channel_lost=self._channel_lost)
        self._max_connections = max_connections
        self._refused = 0
        self.channels: dict[Channel, None] = {}
        self._max_idle_seconds = max_idle_seconds
        self._made, self._lost = traffic.channel_made, traffic.channel_lost
        self._scan: PeriodicJob | None = None
        self.expect: Callable[[Channel], None] | None = None
        """Prepares a new channel for what its first bytes may be (TLS); None where all are frames."""

    def buildProtocol(self, addr: interfaces.IAddress | None) -> Channel | None:
        if len(self.channels) >= self._max_connections:
            self._refuse(addr)
            return None
        self._refused = 0
        channel = Channel(self.traffic)
        channel.factory = self
        if self.expect is not None:
            self.expect(channel)
        return channel

    def _refuse(self, addr: interfaces.IAddress | None) -> None:
        """Told once until a connection is taken again."""
        if not self._refused:
            self.log.warn(
                "connection refused, {n} are open: peer={peer}. More need a higher limit of open files (ulimit -n)",
                n=len(self.channels),
                peer=getattr(addr, "host", addr),
            )
        self._refused += 1

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
        """Close every channel (the server stops)."""
        for channel in list(self.channels):
            channel.close()

    def _channel_made(self, channel: Channel) -> None:
        self.channels[channel] = None
        if self._made is not None:
            self._made(channel)

    def _channel_lost(self, channel: Channel) -> None:
        self.channels.pop(channel, None)
        if self._lost is not None:
            self._lost(channel)
