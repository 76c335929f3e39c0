"""Measures how long it takes to create or alter topics and groups (Apache: AdminBrokerProcessor, BrokerMetricsManager)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import cast

import attrs
from twisted.internet import defer
from twisted.python import failure

from twisted_mq.broker.statistics.distributions import CREATION_LIMITS_MS, Distribution, Distributions
from twisted_mq.protocol.codes import RequestCode
from twisted_mq.protocol.names.system_topics import is_system_topic
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.remoting.channel import Answer, Channel, Processor, Ready

SUCCESS, FAILURE = "success", "failure"
"""Apache: InvocationStatus."""
_Of = Callable[[RemotingCommand, str], Distribution]
OF_TOPICS = (RequestCode.UPDATE_AND_CREATE_TOPIC, RequestCode.UPDATE_AND_CREATE_TOPIC_LIST)
OF_GROUPS = (RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST)


@attrs.frozen(eq=False)
class CreationTimes:
    """Distributions of ms by outcome. Those of `topics` also tell system topics apart, except in lists."""

    topics: Distributions[tuple[str, bool]] = attrs.field(factory=lambda: Distributions(CREATION_LIMITS_MS))
    groups: Distributions[str] = attrs.field(factory=lambda: Distributions(CREATION_LIMITS_MS))

    def timed(self, table: Mapping[int, Processor], seconds: Callable[[], float]) -> dict[int, Processor]:
        """Return the table with the processors of these requests timed, up to their answers."""
        of: dict[int, _Of] = {**dict.fromkeys(OF_TOPICS, self._of_topic), **dict.fromkeys(OF_GROUPS, self._of_group)}
        return {code: _Timed(one, of[code], seconds).serve if code in of else one for code, one in table.items()}

    def _of_topic(self, command: RemotingCommand, status: str) -> Distribution:
        return self.topics[status, is_system_topic(command.ext_fields.get("topic", ""))]

    def _of_group(self, command: RemotingCommand, status: str) -> Distribution:
        return self.groups[status]


@attrs.frozen
class _Timed:
    processor: Processor
    of: _Of
    seconds: Callable[[], float]

    def serve(self, channel: Channel, command: RemotingCommand) -> Answer:
        """Return the processor's answer."""
        began = self.seconds()

        def answered(answer: Ready | failure.Failure) -> Ready | failure.Failure:
            status = FAILURE if isinstance(answer, failure.Failure) else SUCCESS
            self.of(command, status).record((self.seconds() - began) * 1000)
            return answer

        answer = defer.maybeDeferred(self.processor, channel, command)
        return cast("defer.Deferred[Ready]", answer.addBoth(answered))
