"""Message queues, and who consumes which."""

from __future__ import annotations

import attrs
from attrs import field

from twisted_mq.protocol.bodies.types import Int32, Int64, MessageModel, MessageRequestMode, wire


@attrs.frozen(order=True)
class MessageQueue:
    """A queue of a topic on a broker. Ordered by topic, broker and queue id, as rebalancing needs it."""

    topic: str = ""
    broker_name: str = ""
    queue_id: Int32 = 0


@attrs.frozen
class MessageQueueForC:
    """A queue with an offset, in the form that the C++ client reads."""

    topic: str = ""
    broker_name: str = ""
    queue_id: Int32 = 0
    offset: Int64 = 0


@attrs.frozen
class MessageQueueAssignment:
    """A queue given to a consumer, and whether it is to pull or to pop."""

    message_queue: MessageQueue | None = None
    mode: MessageRequestMode = "PULL"
    attachments: dict[str, str] | None = None


@attrs.frozen
class QueryAssignmentRequestBody:
    """Request body of QUERY_ASSIGNMENT."""

    topic: str | None = None
    consumer_group: str | None = None
    client_id: str | None = None
    strategy_name: str | None = None
    message_model: MessageModel | None = None


@attrs.frozen
class QueryAssignmentResponseBody:
    """Answer to QUERY_ASSIGNMENT. Without a list the consumer keeps what it has; an empty one takes all from it."""

    message_queue_assignments: list[MessageQueueAssignment] | None = None


@attrs.frozen
class SetMessageRequestModeRequestBody:
    """Request body of SET_MESSAGE_REQUEST_MODE."""

    topic: str | None = None
    consumer_group: str | None = None
    mode: MessageRequestMode = "PULL"
    pop_share_queue_num: Int32 = 0


@attrs.frozen
class MessageRequestModeSerializeWrapper:
    """Answer to GET_ALL_MESSAGE_REQUEST_MODE."""

    message_request_mode_map: dict[str, dict[str, SetMessageRequestModeRequestBody]] = field(factory=dict)


@attrs.frozen
class LockBatchRequestBody:
    """Request body of LOCK_BATCH_MQ."""

    consumer_group: str = ""
    client_id: str = ""
    only_this_broker: bool = False
    mq_set: list[MessageQueue] = field(factory=list)


@attrs.frozen
class LockBatchResponseBody:
    """Answer to LOCK_BATCH_MQ."""

    lock_ok_mq_set: list[MessageQueue] = field(factory=list, metadata=wire("lockOKMQSet"))


@attrs.frozen
class UnlockBatchRequestBody:
    """Request body of UNLOCK_BATCH_MQ."""

    consumer_group: str = ""
    client_id: str = ""
    only_this_broker: bool = False
    mq_set: list[MessageQueue] = field(factory=list)
