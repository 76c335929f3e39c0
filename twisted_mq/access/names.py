"""Finds the resources that a request names, by the table of rights. Long bodies are parsed in a thread."""

from __future__ import annotations

from collections.abc import Callable

import attrs
from twisted.internet import defer

from twisted_mq.access.resources import Resource, cluster, group, topic
from twisted_mq.protocol.codes import ResponseCode
from twisted_mq.protocol.errors import BrokerError
from twisted_mq.protocol.requests.rights import BY_CODE, Rights
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.reactor_threads import InThread

READ_AT_ONCE = 64 * 1024
"""The longest body in bytes that is parsed at once, as in the broker's own parsing."""
MOST_BODY_BYTES = 8 * 1024 * 1024


@attrs.frozen
class ResourceNames:
    """Finds the resources for one server: requests that name neither topic nor group are about its cluster."""

    cluster_name: str
    in_thread: InThread

    def check_all(
        self, command: RemotingCommand, check: Callable[[Rights, list[Resource]], None]
    ) -> defer.Deferred[None] | None:
        """Call `check` with the request's resources, at once or after a long body was parsed. Raises BodyError, BrokerError."""
        rights = BY_CODE[command.code]
        if not rights.reads_body or len(command.body) <= READ_AT_ONCE:
            check(rights, self._resources(rights, command))
            return None
        if len(command.body) > MOST_BODY_BYTES:
            raise BrokerError(ResponseCode.INVALID_PARAMETER, f"body: {len(command.body)} bytes exceed the limit")
        return self.in_thread(self._resources, rights, command).addCallback(lambda named: check(rights, named))

    def _resources(self, rights: Rights, command: RemotingCommand) -> list[Resource]:
        named = dict.fromkeys(topic(name) for name in rights.topics(command))
        named |= dict.fromkeys(group(name) for name in rights.groups(command))
        return list(named) if named or rights.for_all else [cluster(self.cluster_name)]
