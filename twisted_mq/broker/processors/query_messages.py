"""Looks up stored messages and queue entries: codes 12, 33 and 321 (Apache: QueryMessageProcessor, AdminBrokerProcessor)."""

from __future__ import annotations

from typing import Protocol

from twisted_mq.broker.clients.consumer_manager import ConsumerManager
from twisted_mq.broker.named_records import NamedRecords
from twisted_mq.broker.options import BrokerOptions
from twisted_mq.protocol.bodies import ConsumeQueueData, QueryConsumeQueueResponseBody, encode_body
from twisted_mq.protocol.codes import RequestCode, ResponseCode
from twisted_mq.protocol.errors import BrokerError
from twisted_mq.protocol.headers import (
    QueryConsumeQueueRequestHeader,
    QueryMessageRequestHeader,
    QueryMessageResponseHeader,
    ViewMessageRequestHeader,
)
from twisted_mq.protocol.layouts.record import topic_of
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.protocol.wire.header_codec import decode_header, encode_header
from twisted_mq.remoting.channel import Answer, Channel
from twisted_mq.storage.interfaces import IMessageStore

UNIQUE_KEY_QUERY = "_UNIQUE_KEY_QUERY"
"""Field outside of the header of QUERY_MESSAGE that asks for a unique key (Apache: MixAll.UNIQUE_MSG_QUERY_FLAG)."""
NOT_FOUND = "can not find message, maybe time range not correct"
MOST_ENTRIES = 10_000
"""Entries in one answer; Apache's broker has no limit."""


class QueryMessagesParts(Protocol):
    """The parts of the broker that questions about messages use."""

    options: BrokerOptions
    store: IMessageStore
    consumers: ConsumerManager


class QueryMessagesProcessor:
    """Reads single records and entries; changes nothing."""

    def __init__(self, broker: QueryMessagesParts, records: NamedRecords) -> None:
        self._options = broker.options
        self._store = broker.store
        self._consumers = broker.consumers
        self._records = records
        self.processors = {
            RequestCode.QUERY_MESSAGE: self.query_message,
            RequestCode.VIEW_MESSAGE_BY_ID: self.view_message,
            RequestCode.QUERY_CONSUME_QUEUE: self.consume_queue,
        }

    def query_message(self, channel: Channel, command: RemotingCommand) -> Answer:
        """Return the records of a key, back to back; QUERY_NOT_FOUND if there are none.

        A search by unique key does not say how many it wants: the store's default limit applies. Records of the topic
        whose key only has the same hash are among them; clients leave those out. Records of other topics are never among
        them.
        """
        header = decode_header(QueryMessageRequestHeader, command)
        most = header.max_num
        if command.ext_fields.get(UNIQUE_KEY_QUERY) == "true":
            most = self._options.default_query_max_num
        found = self._store.query_message(header.topic, header.key, most, header.begin_timestamp, header.end_timestamp)
        fields = encode_header(
            QueryMessageResponseHeader(
                index_last_update_timestamp=found.index_last_update_timestamp,
                index_last_update_phyoffset=found.index_last_update_physical_offset,
            )
        )
        records = [record for record in found.records if topic_of(record) == header.topic]
        if not records:
            return command.answer(ResponseCode.QUERY_NOT_FOUND, NOT_FOUND, fields)
        return command.answer(ext_fields=fields, body=b"".join(records))

    def view_message(self, channel: Channel, command: RemotingCommand) -> Answer:
        """Return the stored record at a physical offset; SYSTEM_ERROR if no record begins there."""
        offset = decode_header(ViewMessageRequestHeader, command).offset
        return self._records.answer(
            channel, command, offset, lambda record, _: command.answer(body=record), brokers_own=True
        )

    def consume_queue(self, channel: Channel, command: RemotingCommand) -> Answer:
        """Return entries of a queue from an offset on and, if a group is named, its subscription."""
        header = decode_header(QueryConsumeQueueRequestHeader, command)
        store, topic, queue_id = self._store, header.topic or "", header.queue_id
        if queue_id not in store.queue_ids(topic):
            raise BrokerError(ResponseCode.SYSTEM_ERROR, f"{queue_id}@{topic} is not exist!")
        first, end = store.min_offset_in_queue(topic, queue_id), store.max_offset_in_queue(topic, queue_id)
        if not first <= header.index < end:
            remark = f"Index {header.index} of {queue_id}@{topic} is not exist!"
            return command.answer(ResponseCode.SUCCESS, remark)
        subscription = self._consumers.subscription(header.consumer_group or "", topic)
        filter_data = None
        if header.consumer_group is not None:
            filter_data = "null" if subscription else f"{header.consumer_group}@{topic} is not online!"
        entries = store.queue_entries(topic, queue_id, header.index, max(0, min(header.count, MOST_ENTRIES)))
        body = QueryConsumeQueueResponseBody(
            subscription_data=subscription,
            filter_data=filter_data,
            queue_data=[
                ConsumeQueueData(physic_offset=physical_offset, physic_size=size, tags_code=tags_code)
                for physical_offset, size, tags_code in entries
            ],
            max_queue_index=end,
            min_queue_index=first,
        )
        return command.answer(body=encode_body(body))
