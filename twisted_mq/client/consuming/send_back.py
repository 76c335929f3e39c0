"""Sends back messages that were not consumed: their broker delivers them later, in the group's retry topic.

If that broker cannot, the message is sent again to the retry topic, on whichever broker accepts it (Apache:
DefaultMQPushConsumerImpl.sendMessageBack).
"""

from __future__ import annotations

import attrs

from twisted_mq.client.core.errors import BrokerGone, NoRoute
from twisted_mq.client.core.mq_client import MQClient
from twisted_mq.client.producing.outgoing import outgoing
from twisted_mq.client.producing.producer_options import ProducerOptions
from twisted_mq.client.producing.sender import Sender
from twisted_mq.logs import Logger
from twisted_mq.protocol.bodies import MessageQueue
from twisted_mq.protocol.errors import ProtocolError
from twisted_mq.protocol.messages.message import Message, MessageExt
from twisted_mq.protocol.names.namespaces import with_namespace
from twisted_mq.protocol.names.static_topics import is_logical
from twisted_mq.protocol.names.validation import retry_topic
from twisted_mq.protocol.text.properties import (
    PROPERTY_DELAY_TIME_LEVEL,
    PROPERTY_MAX_RECONSUME_TIMES,
    PROPERTY_ORIGIN_MESSAGE_ID,
    PROPERTY_RECONSUME_TIME,
    PROPERTY_RETRY_TOPIC,
    PROPERTY_TRANSACTION_PREPARED,
)
from twisted_mq.remoting.errors import RemotingError

INNER_PRODUCER = "CLIENT_INNER_PRODUCER"
"""MixAll.CLIENT_INNER_PRODUCER_GROUP"""

FIRST_DELAY_LEVEL = 3
"""Delay level of the first retry; each further retry has one more."""


def retry_message(message: MessageExt, group: str, max_tries: int) -> Message:
    """Return the message as it is sent to the group's retry topic."""
    properties = dict(message.properties)
    properties.setdefault(PROPERTY_ORIGIN_MESSAGE_ID, message.unique_key or message.msg_id)
    properties[PROPERTY_RETRY_TOPIC] = message.topic
    properties[PROPERTY_RECONSUME_TIME] = str(message.reconsume_times + 1)
    properties[PROPERTY_MAX_RECONSUME_TIMES] = str(max_tries)
    properties[PROPERTY_DELAY_TIME_LEVEL] = str(FIRST_DELAY_LEVEL + message.reconsume_times)
    properties.pop(PROPERTY_TRANSACTION_PREPARED, None)
    return Message(retry_topic(group), message.body, message.flag, properties)


class SendBack:
    """Sends back one consumer group's messages."""

    log = Logger()

    def __init__(self, client: MQClient, group: str, max_tries: int, namespace: str = "") -> None:
        """`namespace` was removed from the messages' topics."""
        self._client = client
        self._group = group
        self._max_tries = max_tries
        self._namespace = namespace
        self._options = ProducerOptions()
        self._sender = Sender(client, INNER_PRODUCER, self._options)

    async def give_back(self, message: MessageExt, queue: MessageQueue, delay_level: int) -> None:
        """Have the message delivered later. Raises ClientError, RemotingError or BrokerError if no way works.

        `delay_level` 0 lets the broker choose by the number of tries; -1 makes a dead letter.
        """
        message = attrs.evolve(message, topic=with_namespace(self._namespace, message.topic))
        try:
            if is_logical(queue.broker_name):  # its broker does not accept logical offsets here
                raise BrokerGone(queue.broker_name, self._client.name_servers.addresses)
            address = await self._client.routes.master_of(queue)
            await self._client.calls.send_back(
                address, self._group, queue, message, delay_level=delay_level, max_tries=self._max_tries
            )
        except (NoRoute, RemotingError, ProtocolError) as error:
            self.log.info(
                "message not accepted by the broker, sent to the retry topic: group={group} broker={broker} {error}",
                group=self._group, broker=queue.broker_name, error=error,
            )  # fmt: skip
            again = retry_message(message, self._group, self._max_tries)
            ready = outgoing(again, self._client.unique_key(), self._options.limits)
            await self._sender.deliver(ready, None, None)
