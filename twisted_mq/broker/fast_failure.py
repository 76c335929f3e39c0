"""Refuses requests that waited too long for their turn, so that their clients try another broker (Apache: BrokerFastFailure).

A request waits while the broker works on earlier requests of other connections. A request that waits for a disk, a slave
or a message is in progress, and is not refused.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from twisted_mq.broker.options import BrokerOptions
from twisted_mq.protocol.codes import RequestCode, ResponseCode
from twisted_mq.protocol.errors import BrokerError
from twisted_mq.protocol.wire.command import RemotingCommand

Limit = Callable[[BrokerOptions], int]

LEAST_MS = 1
"""A limit of 0 counts as this one. Apache's broker looks for late requests every 10 ms, so that with a limit of 0 it still
serves those that are processed in between.
"""

NEVER: frozenset[int] = frozenset(
    {
        RequestCode.UNREGISTER_CLIENT,
        RequestCode.CHECK_CLIENT_CONFIG,
        RequestCode.GET_CONSUMER_LIST_BY_GROUP,
        RequestCode.UPDATE_CONSUMER_OFFSET,
        RequestCode.QUERY_CONSUMER_OFFSET,
        RequestCode.QUERY_ASSIGNMENT,
        RequestCode.SET_MESSAGE_REQUEST_MODE,
        RequestCode.QUERY_MESSAGE,
        RequestCode.VIEW_MESSAGE_BY_ID,
        RequestCode.SEND_REPLY_MESSAGE,
        RequestCode.SEND_REPLY_MESSAGE_V2,
    }
)
"""Requests of the thread pools that Apache's broker does not clean."""


def _by_code() -> dict[int, Limit]:
    groups: Mapping[Limit, tuple[RequestCode, ...]] = {
        lambda options: options.wait_time_mills_in_send_queue: (
            RequestCode.SEND_MESSAGE,
            RequestCode.SEND_MESSAGE_V2,
            RequestCode.SEND_BATCH_MESSAGE,
            RequestCode.CONSUMER_SEND_MSG_BACK,
            RequestCode.RECALL_MESSAGE,
        ),
        lambda options: options.wait_time_mills_in_pull_queue: (
            RequestCode.PULL_MESSAGE,
            RequestCode.PEEK_MESSAGE,
            RequestCode.POP_MESSAGE,
            RequestCode.NOTIFICATION,
            RequestCode.POLLING_INFO,
        ),
        lambda options: options.wait_time_mills_in_lite_pull_queue: (RequestCode.LITE_PULL_MESSAGE,),
        lambda options: options.wait_time_mills_in_heartbeat_queue: (RequestCode.HEART_BEAT,),
        lambda options: options.wait_time_mills_in_transaction_queue: (RequestCode.END_TRANSACTION,),
        lambda options: options.wait_time_mills_in_ack_queue: (
            RequestCode.ACK_MESSAGE,
            RequestCode.BATCH_ACK_MESSAGE,
            RequestCode.CHANGE_MESSAGE_INVISIBLETIME,
        ),
    }
    return {code: limit for limit, codes in groups.items() for code in codes}


LIMITS = _by_code()
"""Request code -> the time in ms that it may wait; all others may wait as long as requests of operators."""


class FastFailure:
    """Refuses late requests, by the options as they are now."""

    def __init__(self, options: BrokerOptions) -> None:
        self._options = options

    def __call__(self, command: RemotingCommand, waited_seconds: float, waiting: int) -> BrokerError | None:
        """Return the refusal of a request that waited this long; None to serve it. `waiting` more requests of its
        connection wait.
        """
        options = self._options
        if not options.broker_fast_failure_enable or command.code in NEVER:
            return None
        limit = LIMITS.get(command.code)
        most_ms = options.wait_time_mills_in_admin_broker_queue if limit is None else limit(options)
        waited_ms = int(waited_seconds * 1000)
        if waited_ms < max(LEAST_MS, most_ms):
            return None
        remark = "broker busy, start flow control for a while, period in queue: "
        return BrokerError(
            ResponseCode.SYSTEM_BUSY, f"[TIMEOUT_CLEAN_QUEUE]{remark}{waited_ms}ms, size of queue: {waiting}"
        )
