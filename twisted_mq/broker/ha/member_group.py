"""Asks the name servers which brokers are registered under this broker's name (Apache:
BrokerController.syncBrokerMemberGroup).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import attrs
from twisted.internet import defer

from twisted_mq.broker.options import BrokerOptions
from twisted_mq.logs import Logger
from twisted_mq.protocol.bodies import GetBrokerMemberGroupResponseBody, decode_body
from twisted_mq.protocol.codes import RequestCode
from twisted_mq.protocol.errors import ProtocolError
from twisted_mq.protocol.headers import GetBrokerMemberGroupRequestHeader
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.protocol.wire.header_codec import encode_header
from twisted_mq.remoting.errors import RemotingError

ASK_SECONDS = 3.0


@attrs.frozen
class MemberGroup:
    """The brokers of one name; `invoke` asks a peer, as RemotingClient does."""

    options: BrokerOptions
    name_servers: Sequence[str]
    invoke: Callable[[str, RemotingCommand, float], defer.Deferred[RemotingCommand]]
    log = Logger()

    async def addresses(self) -> dict[int, str] | None:
        """Return broker id -> host:port, from the first name server that answers; None if none does."""
        header = GetBrokerMemberGroupRequestHeader(
            cluster_name=self.options.broker_cluster_name, broker_name=self.options.broker_name
        )
        for server in self.name_servers:
            command = RemotingCommand.request(RequestCode.GET_BROKER_MEMBER_GROUP, encode_header(header))
            try:
                answer = await self.invoke(server, command, ASK_SECONDS)
                group = decode_body(GetBrokerMemberGroupResponseBody, answer.body) if answer.code == 0 else None
            except (RemotingError, ProtocolError) as error:
                self.log.debug("group members not known: {s} {e}", s=server, e=error)
                continue
            if group is not None and group.broker_member_group is not None:
                return dict(group.broker_member_group.broker_addrs)
        return None
