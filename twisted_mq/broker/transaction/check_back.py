"""Asks a producer for the outcome of its transaction (39, one-way); it answers with END_TRANSACTION.

Apache: AbstractTransactionalMessageCheckListener, Broker2Client.
"""

from __future__ import annotations

from twisted_mq.broker.stored_message import StoredMessage
from twisted_mq.broker.transaction.half_messages import check_body
from twisted_mq.broker.transaction.members import TransactionMembers
from twisted_mq.logs import Logger
from twisted_mq.protocol.codes import RequestCode
from twisted_mq.protocol.headers import CheckTransactionStateRequestHeader
from twisted_mq.protocol.layouts.message_id import offset_message_id
from twisted_mq.protocol.names.system_topics import HALF_TOPIC
from twisted_mq.protocol.text.properties import PROPERTY_PRODUCER_GROUP, PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.protocol.wire.header_codec import encode_header
from twisted_mq.storage.interfaces import PutResult

_log = Logger()


def check_back(members: TransactionMembers, broker_name: str, half: StoredMessage, renewed: PutResult) -> bool:
    """Ask one live producer that may know of the message, each time the next; False if there is no such producer.

    `renewed` is where the half message is now; a producer answers with these offsets.
    """
    group = half.properties.get(PROPERTY_PRODUCER_GROUP, "")
    unique_key = half.properties.get(PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX)
    channel = members.to_ask(half)
    if channel is None:
        _log.warn(
            "transaction not checked, no producer of its group with that right is connected: group={group} key={key}",
            group=group, key=unique_key,
        )  # fmt: skip
        return False
    header = CheckTransactionStateRequestHeader(
        topic=HALF_TOPIC,
        commit_log_offset=renewed.physical_offset,
        tran_state_table_offset=renewed.queue_offset,
        offset_msg_id=offset_message_id(half.head.store_host, renewed.physical_offset),
        msg_id=unique_key,
        transaction_id=unique_key,
        bname=broker_name,
    )
    body = check_body(half, renewed.queue_offset, renewed.physical_offset)
    channel.send_one_way(RemotingCommand.request(RequestCode.CHECK_TRANSACTION_STATE, encode_header(header), body))
    _log.info(
        "transaction checked: group={group} key={key} offset={at} peer={peer}",
        group=group, key=unique_key, at=renewed.physical_offset, peer=channel.address,
    )  # fmt: skip
    return True
