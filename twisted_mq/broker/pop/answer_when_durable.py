"""Delays answers until their messages are as durable as configured (Apache waits in putMessageToSpecificQueue)."""

from __future__ import annotations

from twisted_mq.broker.pop.parts import PopParts
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.remoting.channel import Answer


def when_durable(broker: PopParts, answer: RemotingCommand | bytes) -> Answer:
    """Return the answer, or a Deferred of it if the log's end has to reach the disk or a slave first.

    If that takes too long, the answer leaves all the same, because the messages may still become durable.
    """
    if not broker.durability.waits:
        return answer
    return broker.durability.reached(broker.store.max_physical_offset()).addCallback(lambda code: answer)
