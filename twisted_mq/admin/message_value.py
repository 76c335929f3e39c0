"""Messages as JSON objects, with the same keys wherever messages are printed or saved."""

from __future__ import annotations

import base64
import hashlib
import json

from twisted_mq.protocol.messages.message import MessageExt
from twisted_mq.protocol.text.json_value import Json


def describe_message(message: MessageExt) -> dict[str, Json]:
    """Describe a message with the keys of `mq store dump --json`. `bodySha256` and `bodyLength` are of the plain body."""
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
    """Return a message with its body. `msgId` is the producer's id; `offsetMsgId` is the id in the store, as in dumps."""
    return {
        **describe_message(message),
        "msgId": message.unique_key or message.msg_id,
        "offsetMsgId": message.msg_id,
        "body": message.body.decode("utf-8", "backslashreplace"),
        **_exact_body(message.body),
    }


def _exact_body(body: bytes) -> dict[str, Json]:
    """Return the exact body, if it is not text, in the form that `mq send --json-lines` accepts."""
    try:
        body.decode()
    except UnicodeDecodeError:
        return {"bodyBase64": base64.b64encode(body).decode()}
    return {}


def message_line(message: MessageExt) -> str:
    """Return `message_value` as a line of JSON."""
    return json.dumps(message_value(message), ensure_ascii=False, separators=(",", ":")) + "\n"
