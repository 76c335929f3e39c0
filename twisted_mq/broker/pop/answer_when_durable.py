"""Answers that leave once what they are about is as durable as configured (Apache waits in putMessageToSpecificQueue)."""

from __future__ import annotations

from twisted_mq.broker.pop.parts import PopParts
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.remoting.channel import Answer


def when_durable(broker: PopParts, answer: RemotingCommand | bytes) -> Answer:
    """The answer, or a Deferred of it where the log's end has to reach the disk or a slave first.

    What does not get there in time is answered all the same, as it may yet.
    """
    if not broker.durability.waits:
        return answer
    return broker.durability.reached(broker.store.max_physical_offset()).addCallback(lambda code: answer)
