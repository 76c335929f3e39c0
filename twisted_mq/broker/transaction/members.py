"""Decides which connections may end a transaction or be asked about it: the half message's sender, and its group's members.

A half message contains the address that it was sent from. Any connection from that host may end the transaction: a proxy has a
pool of connections, and registers one of them as a producer, up to 20 s later. Any client can register as a producer of any
group. Therefore, under access control, all but the sender's own connection need the right to publish to the message's topic,
and as its group.
"""

from __future__ import annotations

from typing import Protocol

from twisted_mq.access import resources
from twisted_mq.access.server_access import ServerAccess
from twisted_mq.broker.clients.producer_manager import ClientChannelInfo, ProducerManager
from twisted_mq.broker.options import BrokerOptions
from twisted_mq.broker.stored_message import StoredMessage
from twisted_mq.protocol.codes import ResponseCode
from twisted_mq.protocol.errors import BrokerError
from twisted_mq.protocol.requests.rights import Action
from twisted_mq.protocol.text.properties import PROPERTY_PRODUCER_GROUP, PROPERTY_REAL_TOPIC
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.remoting.channel import Channel

PUBLISH = (Action.PUB,)
PORT_BYTES = 4
"""The end of a packed address."""


class MemberParts(Protocol):
    """The parts of the broker whose transactions these are."""

    options: BrokerOptions
    access: ServerAccess
    producers: ProducerManager


class TransactionMembers:
    """The members of one broker's transactions."""

    def __init__(self, broker: MemberParts) -> None:
        self._broker = broker

    def check(self, channel: Channel, command: RemotingCommand, half: StoredMessage) -> None:
        """Raise BrokerError (NO_PERMISSION, or access control's code) unless the connection may end the transaction."""
        options, access, group = self._broker.options, self._broker.access, _group_of(half)
        if not _sent(channel, half):
            if options.transaction_members_only and not self._may_end(channel, half, group):
                remark = (
                    f"producerGroup {group}: /{channel.address} is not on the sender's host, nor a registered producer"
                )
                raise BrokerError(ResponseCode.NO_PERMISSION, remark)
            if options.producer_group_rights_enable:
                access.check_group(channel, command, PUBLISH, group)
        if options.record_rights_enable:
            access.check_topic(channel, command, PUBLISH, _topic_of(half))

    def to_ask(self, half: StoredMessage) -> Channel | None:
        """Return a connection that may be asked about the half message, each time the next one; None if no such
        connection exists.
        """
        group = _group_of(half)
        return self._broker.producers.available_channel(group, lambda client: self._may_be_asked(client, half, group))

    def _may_end(self, channel: Channel, half: StoredMessage, group: str) -> bool:
        sender = half.head.born_host
        return channel.packed_address[:-PORT_BYTES] == sender[:-PORT_BYTES] or self._broker.producers.is_member(
            group, channel
        )

    def _may_be_asked(self, client: ClientChannelInfo, half: StoredMessage, group: str) -> bool:
        options = self._broker.options
        needed = [resources.topic(_topic_of(half))] if options.record_rights_enable else []
        if options.producer_group_rights_enable and not _sent(client.channel, half):
            needed.append(resources.group(group))
        return self._broker.access.may_publish(client.channel, client.account, *needed)


def _sent(channel: Channel, half: StoredMessage) -> bool:
    """Return whether the half message was sent on this connection."""
    return channel.packed_address == half.head.born_host


def _group_of(half: StoredMessage) -> str:
    return half.properties.get(PROPERTY_PRODUCER_GROUP, "")


def _topic_of(half: StoredMessage) -> str:
    return half.properties.get(PROPERTY_REAL_TOPIC, "")
