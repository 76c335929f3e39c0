"""Notices clients that are gone without NotifyClientTermination.

A client is gone if its Telemetry stream broke and it has not opened another one within AWAY_SECONDS, or if its heartbeats
stopped for channelExpiredTimeout. Clients open a new stream a second after the old one broke.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from twisted.internet import interfaces

from twisted_mq.logs import Logger
from twisted_mq.periodic import PeriodicJob
from twisted_mq.proxy.client import GrpcClient
from twisted_mq.proxy.grpc.calls import Call
from twisted_mq.proxy.parts import Parts

AWAY_SECONDS = 5.0
"""The time a client may be without a Telemetry stream after the old one broke."""
SCAN_SECONDS = 10.0
"""The interval of the search for clients whose heartbeats stopped (Apache: 10 s)."""


class Presence:
    """The Telemetry streams of clients. `drop` is called with each client that is gone."""

    log = Logger()

    def __init__(self, parts: Parts, clients: Iterable[GrpcClient], drop: Callable[[GrpcClient], object]) -> None:
        self._parts = parts
        self._clients = clients
        self._drop = drop
        self._away: dict[GrpcClient, interfaces.IDelayedCall] = {}
        self._job: PeriodicJob | None = None

    def start(self) -> None:
        """Start to look for silent clients periodically."""
        self._job = PeriodicJob("check for silent gRPC clients", self._parts.clock, SCAN_SECONDS, self.look)

    def stop(self) -> None:
        """Stop looking. A second call does nothing."""
        job, self._job = self._job, None
        if job is not None:
            job.stop()
        for client in list(self._away):
            self.forget(client)

    def seen(self, client: GrpcClient) -> None:
        """Note a heartbeat, or settings."""
        client.seen_at = self._parts.clock.seconds()

    def opened(self, client: GrpcClient, call: Call) -> None:
        """Note the client's present Telemetry stream; the one before it ends."""
        before, client.telemetry = client.telemetry, call
        if before is call:
            return
        self.forget(client)
        call.when_over(lambda: self._over(client, call))
        if before is not None:
            before.finish()

    def forget(self, client: GrpcClient) -> None:
        """Stop waiting for a client's new stream."""
        timer = self._away.pop(client, None)
        if timer is not None:
            timer.cancel()

    def _over(self, client: GrpcClient, call: Call) -> None:
        if client.telemetry is not call:
            return
        client.telemetry = None
        if call.is_broken and client.connected_now:
            self._away[client] = self._parts.clock.callLater(AWAY_SECONDS, self._stays_away, client)

    def _stays_away(self, client: GrpcClient) -> None:
        del self._away[client]
        self._gone(client, "its connection broke")

    def look(self) -> None:
        """Drop the clients whose heartbeats stopped."""
        since = self._parts.clock.seconds() - self._parts.options.channel_expired_timeout / 1000
        for client in list(self._clients):
            if client.seen_at <= since:
                self._gone(client, "its heartbeats stopped")

    def _gone(self, client: GrpcClient, why: str) -> None:
        self.log.info(
            "client removed, {why}: client={id} peer={peer}", why=why, id=client.client_id, peer=client.address
        )
        self._drop(client)
