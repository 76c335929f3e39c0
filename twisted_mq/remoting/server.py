"""The listening side: a channel for each connection, and the scan that closes idle ones."""

from __future__ import annotations

from collections.abc import Callable

import attrs
from twisted.internet import interfaces, protocol

from twisted_mq.logs import Logger
from twisted_mq.periodic import PeriodicJob
from twisted_mq.remoting.shares import Served, Shares, address_of
from twisted_mq.remoting.socket_channel import SocketChannel, Traffic

RESERVE = 16
"""Connections of an address that was served before which do not give way to others."""


class RemotingServerFactory(protocol.ServerFactory):
    """Makes channels that share one `Traffic`. `channels` holds those that are connected, the oldest first.

    Past `max_connections` a connection of the address with the most gives way to one of an address with fewer, or the new
    one is closed at once. A channel without traffic for `max_idle_seconds` is closed
    (Apache: serverChannelMaxIdleTimeSeconds, 120).
    """

    noisy = False
    log = Logger()

    def __init__(self, traffic: Traffic, max_idle_seconds: float = 120, max_connections: int = 10_000) -> None:
        self.traffic = attrs.evolve(traffic, channel_made=self._channel_made, channel_lost=self._channel_lost)
        self._max_connections = max_connections
        self._refused = 0
        self.channels: dict[SocketChannel, None] = {}
        self._max_idle_seconds = max_idle_seconds
        self._made, self._lost = traffic.channel_made, traffic.channel_lost
        self._served = Served(traffic.clock)
        self._shares: Shares[SocketChannel] = Shares(self._served.is_proven, RESERVE)
        self._scan: PeriodicJob | None = None
        self.expect: Callable[[SocketChannel], None] | None = None
        """Prepares a new channel for what its first bytes may be (TLS); None where all are frames."""

    def buildProtocol(self, addr: interfaces.IAddress | None) -> SocketChannel | None:
        if len(self.channels) >= self._max_connections and not self._make_room(addr):
            self._refuse(addr)
            return None
        self._refused = 0
        channel = SocketChannel(self.traffic)
        channel.factory = self
        if self.expect is not None:
            self.expect(channel)
        return channel

    def _make_room(self, addr: interfaces.IAddress | None) -> bool:
        """Close the oldest connection of the largest share, where that is larger than the new one's."""
        host = getattr(addr, "host", None)
        channel = self._shares.gives_way(address_of(host), addr) if host is not None else None
        if channel is None:
            return False
        channel.cut(f"{len(self.channels)} are open and its address has the most, it makes room for {host}")
        self._channel_lost_share(channel)
        return True

    def _channel_lost_share(self, channel: SocketChannel) -> None:
        self._shares.discard(channel.share_address, channel, channel)

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

    def _channel_made(self, channel: SocketChannel) -> None:
        self.channels[channel] = None
        self._served.note(channel.share_address)
        self._shares.add(channel.share_address, channel, channel)
        if self._made is not None:
            self._made(channel)

    def _channel_lost(self, channel: SocketChannel) -> None:
        self.channels.pop(channel, None)
        self._channel_lost_share(channel)
        if self._lost is not None:
            self._lost(channel)
