"""A message as a JSON object: the same keys wherever messages are printed or saved."""

from __future__ import annotations

import base64
import hashlib
import json

from twisted_mq.protocol.messages.message import MessageExt
from twisted_mq.protocol.text.json_value import Json


def describe_message(message: MessageExt) -> dict[str, Json]:
    """A MessageExt under the keys of `mq store dump --json`; the body's figures are those of the plain body."""
    return {
        "topic": message.topic,
        "queueId": message.queue_id,
        "queueOffset": message.queue_offset,
        "physicalOffset": message.physical_offset,
        "msgId": message.msg_id,
        "storeSize": message.store_size,
        "bodyCRC": message.body_crc,
        "sysFlag": message.sys_flag,
        "flag": message.flag,
        "bornTimestamp": message.born_timestamp,
        "storeTimestamp": message.store_timestamp,
        "bornHost": message.born_host,
        "storeHost": message.store_host,
        "reconsumeTimes": message.reconsume_times,
        "preparedTransactionOffset": message.prepared_transaction_offset,
        "properties": message.properties,
        "bodySha256": hashlib.sha256(message.body).hexdigest(),
        "bodyLength": len(message.body),
    }


def message_value(message: MessageExt) -> dict[str, Json]:
    """With its body. `msgId` is what the producer was told; the one of the store, which dumps have, is `offsetMsgId`."""
    return {
        **describe_message(message),
        "msgId": message.unique_key or message.msg_id,
        "offsetMsgId": message.msg_id,
        "body": message.body.decode("utf-8", "backslashreplace"),
        **_exact_body(message.body),
    }


def _exact_body(body: bytes) -> dict[str, Json]:
    """What `mq send --json-lines` takes in place of a body that is no text."""
    try:
        body.decode()
    except UnicodeDecodeError:
        return {"bodyBase64": base64.b64encode(body).decode()}
    return {}


def message_line(message: MessageExt) -> str:
    """The same as a line."""
    return json.dumps(message_value(message), ensure_ascii=False, separators=(",", ":")) + "\n"
