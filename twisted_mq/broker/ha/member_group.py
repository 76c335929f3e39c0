"""Asks the name servers which brokers are registered under this broker's name (Apache:
BrokerController.syncBrokerMemberGroup).
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from twisted_mq.broker.options import BrokerOptions
from twisted_mq.logs import Logger
from twisted_mq.protocol.bodies import GetBrokerMemberGroupResponseBody, decode_body
from twisted_mq.protocol.codes import RequestCode
from twisted_mq.protocol.errors import ProtocolError
from twisted_mq.protocol.headers import GetBrokerMemberGroupRequestHeader
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.protocol.wire.header_codec import encode_header
from twisted_mq.remoting.channel import Invoke
from twisted_mq.remoting.errors import RemotingError

ASK_SECONDS = 3.0


@attrs.frozen
class MemberGroup:
    """The brokers of one name; `invoke` asks a peer, as RemotingClient does."""

    options: BrokerOptions
    name_servers: Sequence[str]
    invoke: Invoke
    log = Logger()

    async def addresses(self) -> dict[int, str] | None:
        """Return broker id -> host:port, from the first name server that answers; None if none does."""
        for server in self.name_servers:
            found = await self._known_to(server)
            if found is not None:
                return found
        return None

    async def all_addresses(self) -> dict[int, str] | None:
        """Return the same of all name servers that answer together: a master that one of them knows is not gone."""
        answers = [await self._known_to(server) for server in self.name_servers]
        known = [found for found in answers if found is not None]
        return {number: address for found in reversed(known) for number, address in found.items()} if known else None

    async def _known_to(self, server: str) -> dict[int, str] | None:
        header = GetBrokerMemberGroupRequestHeader(
            cluster_name=self.options.broker_cluster_name, broker_name=self.options.broker_name
        )
        command = RemotingCommand.request(RequestCode.GET_BROKER_MEMBER_GROUP, encode_header(header))
        try:
            answer = await self.invoke(server, command, ASK_SECONDS)
            group = decode_body(GetBrokerMemberGroupResponseBody, answer.body) if answer.code == 0 else None
        except (RemotingError, ProtocolError) as error:
            self.log.debug("group members not known: {s} {e}", s=server, e=error)
            return None
        members = None if group is None else group.broker_member_group
        return None if members is None else dict(members.broker_addrs)
