"""Asks another broker of the same topic (Apache: RpcClient in BrokerOuterAPI)."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from twisted_mq.protocol.codes import ResponseCode
from twisted_mq.protocol.errors import BrokerError, ProtocolError
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.protocol.wire.signature import ACCESS_KEY, SECURITY_TOKEN, SIGNATURE
from twisted_mq.remoting.channel import Invoke
from twisted_mq.remoting.errors import RemotingConnectError, RemotingError
from twisted_mq.routing.errors import ClientError
from twisted_mq.routing.route_cache import RouteCache

SENDERS_FIELDS = (ACCESS_KEY, SIGNATURE, SECURITY_TOKEN)
"""Fields that are removed from a request that is passed on, because this broker signs it again."""


@attrs.frozen
class OtherBrokers:
    """Other brokers, found by the routes of their topics; without name servers there are none."""

    cache: RouteCache | None = None
    invoke: Invoke | None = None
    timeout_seconds: float = 3.0

    async def ask(self, broker_name: str, topic: str, code: int, fields: Mapping[str, str]) -> RemotingCommand:
        """Return the answer of a broker's master, whatever its code. Raises BrokerError without an answer."""
        if self.cache is None or self.invoke is None:
            raise BrokerError(
                ResponseCode.SYSTEM_ERROR, f"broker {broker_name} is not known: this broker has no name server"
            )
        own = {name: value for name, value in fields.items() if name not in SENDERS_FIELDS}
        asked = {**own, "lo": "false", "bname": broker_name}
        try:
            return await self._ask(self.cache, self.invoke, topic, code, asked)
        except (ClientError, RemotingError, ProtocolError) as error:
            raise BrokerError(ResponseCode.SYSTEM_ERROR, f"broker {broker_name} not reached: {error}") from error

    async def _ask(
        self, cache: RouteCache, invoke: Invoke, topic: str, code: int, fields: dict[str, str]
    ) -> RemotingCommand:
        """Ask at the last known address; if nothing is there, ask the name servers for another one."""
        address = await cache.master(fields["bname"], topic)
        try:
            return await invoke(address, RemotingCommand.request(code, fields), self.timeout_seconds)
        except RemotingConnectError:
            await cache.update(topic)
            anew = await cache.master(fields["bname"], topic)
            if anew == address:
                raise
        return await invoke(anew, RemotingCommand.request(code, fields), self.timeout_seconds)
