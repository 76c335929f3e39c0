"""Shows connected clients to operators and asks them questions: codes 203, 204, 223, 307, 309, 328.

Apache: the parts of AdminBrokerProcessor about connections and about requests that are passed on to consumers.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from twisted.internet import defer

from twisted_mq.broker.clients.client_requests import call_consumer, consumer_status, ready_client
from twisted_mq.broker.clients.consumer_manager import ConsumerManager
from twisted_mq.broker.clients.producer_manager import ClientChannelInfo, ProducerManager
from twisted_mq.broker.clients.subscription_group_manager import SubscriptionGroupManager
from twisted_mq.broker.long_answers import ROWS_OF_SLICE, LongAnswers
from twisted_mq.broker.named_records import NamedRecords
from twisted_mq.broker.options import BrokerOptions
from twisted_mq.broker.topics.topic_config_manager import TopicConfigManager
from twisted_mq.protocol.bodies import (
    Connection,
    ConsumerConnection,
    GetConsumerStatusBody,
    ProducerConnection,
    ProducerInfo,
    ProducerTableInfo,
    encode_body,
)
from twisted_mq.protocol.codes import RequestCode, ResponseCode
from twisted_mq.protocol.errors import BrokerError
from twisted_mq.protocol.headers import (
    ConsumeMessageDirectlyResultRequestHeader,
    GetConsumerConnectionListRequestHeader,
    GetConsumerRunningInfoRequestHeader,
    GetConsumerStatusRequestHeader,
    GetProducerConnectionListRequestHeader,
)
from twisted_mq.protocol.layouts.message_id import MessageIdError, decode_offset_message_id
from twisted_mq.protocol.requests.rights import Action
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.protocol.wire.header_codec import decode_header
from twisted_mq.remoting.channel import Answer, Channel
from twisted_mq.turns import Work


class AdminClientsParts(Protocol):
    """The parts of the broker that questions about clients use."""

    options: BrokerOptions
    topics: TopicConfigManager
    groups: SubscriptionGroupManager
    consumers: ConsumerManager
    producers: ProducerManager
    long_answers: LongAnswers


class AdminClientsProcessor:
    """Lists clients, and passes questions on to consumers."""

    def __init__(self, broker: AdminClientsParts, records: NamedRecords) -> None:
        self._options = broker.options
        self._topics = broker.topics
        self._groups = broker.groups
        self._consumers = broker.consumers
        self._producers = broker.producers
        self._records = records
        self._long = broker.long_answers
        self.processors = {
            RequestCode.GET_CONSUMER_CONNECTION_LIST: self.consumer_connections,
            RequestCode.GET_PRODUCER_CONNECTION_LIST: self.producer_connections,
            RequestCode.GET_ALL_PRODUCER_INFO: self.all_producers,
            RequestCode.INVOKE_BROKER_TO_GET_CONSUMER_STATUS: self.consumer_status,
            RequestCode.GET_CONSUMER_RUNNING_INFO: self.running_info,
            RequestCode.CONSUME_MESSAGE_DIRECTLY: self.consume_directly,
        }

    def consumer_connections(self, channel: Channel, command: RemotingCommand) -> Answer:
        """Return a group's consumers, how they consume, and their subscriptions; the remark says where they disagree."""
        group = decode_header(GetConsumerConnectionListRequestHeader, command).consumer_group
        info = self._consumers.groups.get(group)
        if info is None:
            raise BrokerError(ResponseCode.CONSUMER_NOT_ONLINE, f"the consumer group[{group}] not online")
        body = ConsumerConnection(
            connection_set=connections(info.clients.values()),
            subscription_table=info.subscriptions,
            consume_type=info.consume_type,
            message_model=info.message_model,
            consume_from_where=info.consume_from_where,
        )
        conflicts = [f"topic {one.topic}: {one}" for one in self._consumers.conflicts.of_group(group)]
        remark = f"subscription conflict, {'; '.join(conflicts)}" if conflicts else None
        return command.answer(ResponseCode.SUCCESS, remark, body=encode_body(body))

    def producer_connections(self, channel: Channel, command: RemotingCommand) -> Answer:
        """Return a group's producers."""
        group = decode_header(GetProducerConnectionListRequestHeader, command).producer_group
        clients = self._producers.groups.get(group)
        if clients is None:
            raise BrokerError(ResponseCode.SYSTEM_ERROR, f"the producer group[{group}] not exist")
        return command.answer(body=encode_body(ProducerConnection(connection_set=connections(clients.values()))))

    def all_producers(self, channel: Channel, command: RemotingCommand) -> Answer:
        """Return all producers by group, with the time of their last heartbeat."""
        return self._long.shared(channel, command, self._all_producers)

    def _all_producers(self) -> Work[object]:
        table: dict[str, list[ProducerInfo]] = {}
        rows = 0
        for group, clients in list(self._producers.groups.items()):
            table[group] = [producer_info(client) for client in clients.values()]
            rows += 1 + len(clients)
            if rows >= ROWS_OF_SLICE:
                rows = 0
                yield None
        return ProducerTableInfo(data=table)

    def consumer_status(self, channel: Channel, command: RemotingCommand) -> Answer:
        """Ask the consumers of a group for their offsets."""
        header = decode_header(GetConsumerStatusRequestHeader, command)
        return defer.ensureDeferred(self._consumer_status(command, header))

    async def _consumer_status(
        self, command: RemotingCommand, header: GetConsumerStatusRequestHeader
    ) -> RemotingCommand:
        table = await consumer_status(self._consumers, header.topic, header.group, header.client_addr)
        return command.answer(body=encode_body(GetConsumerStatusBody(consumer_table=table)))

    def running_info(self, channel: Channel, command: RemotingCommand) -> Answer:
        """Ask a consumer for its running info."""
        header = decode_header(GetConsumerRunningInfoRequestHeader, command)
        return defer.ensureDeferred(call_consumer(self._consumers, command, header.consumer_group, header.client_id))

    def consume_directly(self, channel: Channel, command: RemotingCommand) -> Answer:
        """Have a consumer consume one stored message now; the answer says how that went."""
        header = decode_header(ConsumeMessageDirectlyResultRequestHeader, command)
        ready_client(self._consumers, header.consumer_group, header.client_id)
        try:
            offset = decode_offset_message_id(header.msg_id or "")[2]
        except MessageIdError as error:
            raise BrokerError(ResponseCode.SYSTEM_ERROR, f"msgId: {error}") from error
        return self._records.answer(
            channel, command, offset, lambda record, _: self._hand_on(command, header, record), actions=(Action.SUB,)
        )

    def _hand_on(
        self, command: RemotingCommand, header: ConsumeMessageDirectlyResultRequestHeader, record: bytes
    ) -> Answer:
        fields = {**command.ext_fields, "brokerName": self._options.broker_name}
        topic = self._topics.get(header.topic) if header.topic else None
        if topic is not None:
            fields["topicSysFlag"] = str(topic.topic_sys_flag)
        group = self._groups.find(header.consumer_group)
        if group is not None:
            fields["groupSysFlag"] = str(group.group_sys_flag)
        passed_on = RemotingCommand.request(command.code, fields, record)
        passed_on.opaque, passed_on.serialize_type = command.opaque, command.serialize_type
        return defer.ensureDeferred(call_consumer(self._consumers, passed_on, header.consumer_group, header.client_id))


def connections(clients: Iterable[ClientChannelInfo]) -> list[Connection]:
    """Return clients as the answers list them."""
    return [
        Connection(
            client_id=client.client_id,
            client_addr=client.channel.address,
            language=client.language,
            version=client.version,
        )
        for client in clients
    ]


def producer_info(client: ClientChannelInfo) -> ProducerInfo:
    """Return a producer as the table of all producers lists it."""
    return ProducerInfo(
        client_id=client.client_id,
        remote_ip=f"/{client.channel.address}",
        language=client.language,
        version=client.version,
        last_update_timestamp=client.last_update_ms,
    )
