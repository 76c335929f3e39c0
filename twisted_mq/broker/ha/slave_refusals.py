"""Refuses what a slave does not serve: sends, pops, and pulls unless slaveReadEnable (Apache: rejectRequest of both
processors).

A slave that acts for its master serves pulls in any case. It writes nothing, so it takes no sends and no pops. A slave whose log
is known to differ from its master's serves no pulls: the master gives the same queue offsets to other messages, which its
readers would skip. (Apache's slave serves them.) Pulls of ordered topics have a check of their own: there the slave may be the
one that has all.
"""

from __future__ import annotations

from collections.abc import Callable

from twisted_mq.broker.options import BrokerOptions
from twisted_mq.protocol.codes import RequestCode, ResponseCode
from twisted_mq.protocol.errors import BrokerError
from twisted_mq.protocol.remarks import REJECTED
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.remoting.channel import Answer, Channel, Processor

SENDS = (
    RequestCode.SEND_MESSAGE,
    RequestCode.SEND_MESSAGE_V2,
    RequestCode.SEND_BATCH_MESSAGE,
    RequestCode.CONSUMER_SEND_MSG_BACK,
)
POPS = (
    RequestCode.POP_MESSAGE,
    RequestCode.ACK_MESSAGE,
    RequestCode.BATCH_ACK_MESSAGE,
    RequestCode.CHANGE_MESSAGE_INVISIBLETIME,
)
"""These requests write the revive log; Apache's slave hands messages out and cannot record it."""
PULLS = (RequestCode.PULL_MESSAGE, RequestCode.LITE_PULL_MESSAGE)


def refuse(channel: Channel, command: RemotingCommand) -> Answer:
    """Answer SYSTEM_BUSY, which makes clients try another broker."""
    raise BrokerError(ResponseCode.SYSTEM_BUSY, REJECTED)


def unless(allowed: Callable[[RemotingCommand], bool], answer: Processor) -> Processor:
    """Return a processor that calls `answer` for allowed requests, and refuses others."""

    def decide(channel: Channel, command: RemotingCommand) -> Answer:
        return answer(channel, command) if allowed(command) else refuse(channel, command)

    return decide


def refuse_on_slave(
    processors: dict[int, Processor],
    options: BrokerOptions,
    is_ordered: Callable[[str], bool],
    acts_as_master: Callable[[], bool] = lambda: False,
    log_differs: Callable[[], bool] = lambda: False,
) -> None:
    """Change a broker's table of processors into that of a slave. Reads of ordered topics are left to their own check."""

    def may_read(command: RemotingCommand) -> bool:
        if acts_as_master() or is_ordered(command.ext_fields.get("topic", "")):
            return True
        return options.slave_read_enable and not log_differs()

    for code in (*SENDS, *POPS):
        processors[int(code)] = refuse
    for code in PULLS:
        processors[int(code)] = unless(may_read, processors[int(code)])
