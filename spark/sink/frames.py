"""Send requests: several messages of one queue in one request, or a single message. Pure functions."""

from __future__ import annotations

import attrs

from twisted_mq.protocol.bodies import MessageQueue
from twisted_mq.protocol.codes import RequestCode
from twisted_mq.protocol.headers import SendMessageRequestHeaderV2
from twisted_mq.protocol.layouts.batch_entry import encode_entry
from twisted_mq.protocol.names.system_topics import AUTO_CREATE_TOPIC
from twisted_mq.protocol.text.java import from_utf8
from twisted_mq.protocol.text.properties import PROPERTY_WAIT_STORE_MSG_OK, encode_properties
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.protocol.wire.header_codec import encode_header
from twisted_mq.spark.sink.columns import Outgoing

_BATCH_PROPERTIES = encode_properties({PROPERTY_WAIT_STORE_MSG_OK: "true"})
_DEFAULT_QUEUES = 4


@attrs.define
class Frame:
    """Messages of one topic that are sent together, in order; `size` is that of the request's body in bytes."""

    messages: list[Outgoing] = attrs.field(factory=list)
    _entries: list[bytes] = attrs.field(factory=list)
    size: int = 0

    def add(self, message: Outgoing) -> None:
        entry = encode_entry(0, message.body, message.properties)
        self.messages.append(message)
        self._entries.append(entry)
        self.size += len(entry)

    def takes(self, message: Outgoing, most_messages: int, most_bytes: int) -> bool:
        """Return True if the message can be added to the frame."""
        if not self.messages:
            return True
        alone = message.alone or self.messages[0].alone
        fits = self.size + len(message.body) + len(message.properties) <= most_bytes
        return not alone and fits and len(self.messages) < most_messages

    @property
    def rows(self) -> tuple[int, int]:
        """Return the first and the last row."""
        return self.messages[0].row, self.messages[-1].row

    def request(self, queue: MessageQueue, group: str, now_ms: int) -> RemotingCommand:
        """Return the request to this queue."""
        batch = len(self.messages) > 1
        message = self.messages[0]
        header = SendMessageRequestHeaderV2(
            producer_group=group,
            topic=queue.topic,
            default_topic=AUTO_CREATE_TOPIC,
            default_topic_queue_nums=_DEFAULT_QUEUES,
            queue_id=queue.queue_id,
            sys_flag=0 if batch else message.sys_flag,
            born_timestamp=now_ms,
            flag=0,
            properties=_BATCH_PROPERTIES if batch else from_utf8(message.properties),
            reconsume_times=0,
            unit_mode=False,
            batch=batch,
            broker_name=queue.broker_name,
        )
        code = RequestCode.SEND_BATCH_MESSAGE if batch else RequestCode.SEND_MESSAGE_V2
        body = b"".join(self._entries) if batch else message.body
        return RemotingCommand.request(code, encode_header(header), body)
