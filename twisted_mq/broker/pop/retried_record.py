"""Makes copies of retried records: a stored message's copy for the retry topic, and a retried one for the wire.

Apache: PopReviveService.reviveRetry, PopMessageProcessor.popMsgFromQueue.
"""

from __future__ import annotations

from twisted_mq.broker.stored_message import StoredMessage
from twisted_mq.protocol.bodies import PopCheckPoint
from twisted_mq.protocol.layouts.derive import Buffer
from twisted_mq.protocol.names.pop_receipt import Receipt
from twisted_mq.protocol.names.pop_topics import retry_mark
from twisted_mq.protocol.text.properties import PROPERTY_FIRST_POP_TIME, PROPERTY_POP_CK
from twisted_mq.storage.interfaces import InnerMessage


def with_receipt(
    record: Buffer,
    topic: str,
    start_offset: int,
    pop_time: int,
    invisible_time: int,
    revive_queue_id: int,
    broker_name: str,
) -> bytes:
    """Return the record of a retry topic under its original topic's name, with its receipt as the property POP_CK."""
    message = StoredMessage.read(record)
    head = message.head
    receipt = Receipt(
        start_offset, pop_time, invisible_time, revive_queue_id, retry_mark(message.topic), broker_name,
        head.queue_id, head.queue_offset,
    )  # fmt: skip
    message.properties[PROPERTY_POP_CK] = receipt.encode()
    return message.encoded(topic, head.queue_id, head.queue_offset, head.physical_offset)


def revived(record: Buffer, topic: str, point: PopCheckPoint, born_host: bytes) -> InnerMessage:
    """Return the copy for a retry topic, consumed once more, with the time of its first pop. Raises RecordError."""
    message = StoredMessage.read(record)
    reconsumed = message.head.reconsume_times
    if reconsumed == 0:
        message.properties[PROPERTY_FIRST_POP_TIME] = str(point.pop_time)
    else:
        message.properties.setdefault(PROPERTY_FIRST_POP_TIME, str(point.pop_time))
    copy = message.copy_to(topic, 0, reconsumed + 1)
    copy.born_host = born_host
    return copy
