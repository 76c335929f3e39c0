"""Messages as consumers get them."""

from __future__ import annotations

from twisted_mq.protocol.messages.message import MessageExt


def received(
    body: bytes = b"x", topic: str = "Orders", *, unique_key: str | None = None, msg_id: str = "M1"
) -> MessageExt:
    """A stored message of this body."""
    properties = {} if unique_key is None else {"UNIQ_KEY": unique_key}
    return MessageExt(
        topic=topic, queue_id=0, queue_offset=0, physical_offset=0, store_size=100, body_crc=0, sys_flag=0, flag=0,
        born_timestamp=1, born_host="127.0.0.1:1", store_timestamp=1, store_host="127.0.0.1:1", reconsume_times=0,
        prepared_transaction_offset=0, properties=properties, body=body, msg_id=msg_id,
    )  # fmt: skip
