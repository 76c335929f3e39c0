"""Divides queues among consumers: QUERY_ASSIGNMENT (400), SET_MESSAGE_REQUEST_MODE (401). Apache: QueryAssignmentProcessor.

config/messageRequestMode.json says how each group consumes each topic: by pull or by pop.
"""

from __future__ import annotations

from typing import Protocol

from twisted.internet import defer

from twisted_mq.broker.clients.consumer_manager import ConsumerManager
from twisted_mq.broker.clients.queue_assignment import Group, NothingToDivide, divide
from twisted_mq.broker.clients.subscription_group_manager import SubscriptionGroupManager
from twisted_mq.broker.options import BrokerOptions, MessageRequestMode
from twisted_mq.broker.request_bodies import short_body
from twisted_mq.broker.tables import BrokerTables
from twisted_mq.broker.topics.topic_config_manager import TopicConfigManager
from twisted_mq.broker.topics.topic_routes import TopicRoutes
from twisted_mq.logs import Logger
from twisted_mq.protocol.bodies import (
    MessageQueue,
    MessageQueueAssignment,
    QueryAssignmentRequestBody,
    QueryAssignmentResponseBody,
    SetMessageRequestModeRequestBody,
    encode_body,
)
from twisted_mq.protocol.bodies.types import BROADCASTING
from twisted_mq.protocol.codes import RequestCode, ResponseCode
from twisted_mq.protocol.errors import BrokerError
from twisted_mq.protocol.names.system_topics import RETRY_PREFIX, is_lmq
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.remoting.channel import Answer, Channel


class QueryAssignmentParts(Protocol):
    """The parts of the broker that assignments use."""

    options: BrokerOptions
    topics: TopicConfigManager
    groups: SubscriptionGroupManager
    consumers: ConsumerManager
    routes: TopicRoutes
    tables: BrokerTables


class QueryAssignmentProcessor:
    """Tells a consumer its queues and whether to pull or to pop them."""

    log = Logger()

    def __init__(self, broker: QueryAssignmentParts) -> None:
        self._options = broker.options
        self._topics = broker.topics
        self._groups = broker.groups
        self._consumers = broker.consumers
        self._routes = broker.routes
        self._request_modes = broker.tables.request_modes
        self.processors = {
            RequestCode.QUERY_ASSIGNMENT: self.query_assignment,
            RequestCode.SET_MESSAGE_REQUEST_MODE: self.set_request_mode,
        }

    def query_assignment(self, channel: Channel, command: RemotingCommand) -> Answer:
        """Return the client's queues of a topic. An answer without a list means that the client keeps its queues."""
        body = short_body(QueryAssignmentRequestBody, command)
        for name in ("topic", "consumer_group", "message_model"):
            if getattr(body, name) is None:
                raise BrokerError(ResponseCode.SYSTEM_ERROR, f"QueryAssignmentRequestBody has no {name}")
        return defer.Deferred.fromCoroutine(self._query(command, body))

    async def _query(self, command: RemotingCommand, body: QueryAssignmentRequestBody) -> RemotingCommand:
        mode = self._mode(body.topic or "", body.consumer_group or "")
        queues = await self._queues(body, mode)
        assignments = None
        if queues is not None:
            assignments = [MessageQueueAssignment(queue, mode.mode) for queue in queues]
        return command.answer(body=encode_body(QueryAssignmentResponseBody(assignments)))

    def _mode(self, topic: str, group: str) -> SetMessageRequestModeRequestBody:
        """Return the mode that was set, or else the broker's default; a retry topic is always pulled."""
        known = self._request_modes.modes.get(topic, {}).get(group)
        if known is not None:
            return known
        options = self._options
        if topic.startswith(RETRY_PREFIX) or options.default_message_request_mode != MessageRequestMode.POP:
            return SetMessageRequestModeRequestBody(topic, group)
        return SetMessageRequestModeRequestBody(
            topic, group, MessageRequestMode.POP.value, options.default_pop_share_queue_num
        )

    async def _queues(
        self, body: QueryAssignmentRequestBody, mode: SetMessageRequestModeRequestBody
    ) -> list[MessageQueue] | None:
        topic, group = body.topic or "", body.consumer_group or ""
        broadcast = body.message_model == BROADCASTING
        if is_lmq(topic) and not broadcast:
            queues: list[MessageQueue] | None = [MessageQueue(topic, self._options.broker_name, 0)]
        else:
            queues = await self._routes.queues(topic)
        if queues is None or broadcast or not self._options.server_load_balancer_enable:
            return queues
        info = self._consumers.groups.get(group)
        if info is None:
            return None
        try:
            return divide(body.strategy_name, queues, Group(body.client_id or "", sorted(info.client_ids())), mode)
        except NothingToDivide as error:
            self.log.warn(
                "no queues assigned: group={group} topic={topic} {error}", group=group, topic=topic, error=error
            )
            return None

    def set_request_mode(self, channel: Channel, command: RemotingCommand) -> Answer:
        """Have a group consume a topic by pull or by pop from now on."""
        body = short_body(SetMessageRequestModeRequestBody, command)
        for name in ("topic", "consumer_group"):
            if getattr(body, name) is None:
                raise BrokerError(ResponseCode.SYSTEM_ERROR, f"SetMessageRequestModeRequestBody has no {name}")
        topic, group = body.topic or "", body.consumer_group or ""
        if topic.startswith(RETRY_PREFIX):
            raise BrokerError(ResponseCode.NO_PERMISSION, "retry topic is not allowed to set mode")
        if self._topics.get(topic) is None:
            raise BrokerError(ResponseCode.TOPIC_NOT_EXIST, f"topic[{topic}] not exist")
        if self._groups.find(group, channel.share_address) is None:
            raise BrokerError(ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST, "subscription group does not exist")
        modes = self._request_modes
        modes.modes.setdefault(topic, {})[group] = body
        modes.save()
        return command.answer()
