"""Tells the name servers each brokerHeartbeatInterval that the broker lives (Apache: BrokerController.sendHeartbeat).

In the mode of acting masters a broker that is silent for brokerNotActiveTimeoutMillis leaves the routes, and registrations
are too rare and too large for that. Name servers before 5.0 take a query of the data version for a sign of life.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import attrs
from twisted.internet import defer
from twisted.python import failure

from twisted_mq.broker.options import BrokerOptions
from twisted_mq.logs import Logger
from twisted_mq.protocol.bodies import DataVersion, encode_body
from twisted_mq.protocol.codes import RequestCode
from twisted_mq.protocol.errors import ProtocolError
from twisted_mq.protocol.headers import BrokerHeartbeatRequestHeader, QueryDataVersionRequestHeader
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.protocol.wire.header_codec import encode_header
from twisted_mq.remoting.channel import Invoke
from twisted_mq.remoting.errors import RemotingError


@attrs.frozen
class Heartbeat:
    """The heartbeat of one broker. `version` is that of its topics; `is_registered` says whether name servers know it."""

    options: BrokerOptions
    broker_address: str
    name_servers: Sequence[str]
    invoke: Invoke
    version: Callable[[], DataVersion]
    is_registered: Callable[[], bool]
    log = Logger()

    def beat(self) -> defer.Deferred[None]:
        """Tell every name server; fires when each has answered or failed. An answer changes nothing."""
        if not self.is_registered():
            return defer.succeed(None)
        seconds = self.options.send_heartbeat_timeout_millis / 1000
        calls = [
            self.invoke(address, self._command(), seconds).addErrback(self._failed, address)
            for address in self.name_servers
        ]
        return defer.DeferredList(calls).addCallback(lambda _: None)

    def _command(self) -> RemotingCommand:
        options = self.options
        if options.compatible_with_old_name_srv:
            query = QueryDataVersionRequestHeader(
                broker_name=options.broker_name,
                broker_addr=self.broker_address,
                cluster_name=options.broker_cluster_name,
                broker_id=options.broker_id,
            )
            body = encode_body(self.version())
            return RemotingCommand.request(RequestCode.QUERY_DATA_VERSION, encode_header(query), body)
        heartbeat = BrokerHeartbeatRequestHeader(
            cluster_name=options.broker_cluster_name,
            broker_addr=self.broker_address,
            broker_name=options.broker_name,
            broker_id=options.broker_id,
        )
        return RemotingCommand.request(RequestCode.BROKER_HEARTBEAT, encode_header(heartbeat))

    def _failed(self, reason: failure.Failure, address: str) -> None:
        """A name server that is away is logged by the registration."""
        reason.trap(RemotingError, ProtocolError)
        self.log.debug("heartbeat not taken: name server={a} {e}", a=address, e=reason.value)
