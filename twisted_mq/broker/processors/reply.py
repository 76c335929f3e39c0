"""Delivers replies: codes 324 (SEND_REPLY_MESSAGE) and 325 (its one-letter form). Apache: ReplyMessageProcessor.

A consumer answers a request with a message that names the client that asked (REPLY_TO_CLIENT). The broker pushes it to
that client's connection (326, PUSH_REPLY_MESSAGE_TO_CLIENT) and stores it if storeReplyMessageEnable is on. Its answer to
the consumer says whether the push succeeded.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from random import Random
from typing import Protocol

from twisted.internet import defer
from twisted.python import failure

from twisted_mq.broker.clients.producer_manager import ProducerManager
from twisted_mq.broker.ha.durability import Durability
from twisted_mq.broker.options import BrokerOptions
from twisted_mq.broker.processors.send import Read, SendAnswers
from twisted_mq.broker.processors.send_checks import PROPERTIES_TOO_LONG, SendChecks, SendHeader, not_stored
from twisted_mq.broker.statistics.broker_statistics import BrokerStatistics
from twisted_mq.broker.statistics.call_times import TimedCall
from twisted_mq.config.values import value_text
from twisted_mq.logs import Logger
from twisted_mq.protocol.codes import RequestCode, ResponseCode
from twisted_mq.protocol.errors import BrokerError
from twisted_mq.protocol.flags import without_commit
from twisted_mq.protocol.headers import (
    ReplyMessageRequestHeader,
    SendMessageRequestHeader,
    SendMessageRequestHeaderV2,
    SendMessageResponseHeader,
)
from twisted_mq.protocol.layouts.message_id import offset_message_id
from twisted_mq.protocol.names.system_topics import reply_topic
from twisted_mq.protocol.text.java import tags_code, utf8
from twisted_mq.protocol.text.properties import (
    BROKERS_PROPERTIES,
    MAX_PROPERTIES_BYTES,
    PROPERTY_MESSAGE_REPLY_TO_CLIENT,
    PROPERTY_MSG_REGION,
    PROPERTY_PUSH_REPLY_TIME,
    PROPERTY_TAGS,
    PROPERTY_TRACE_SWITCH,
    decode_properties,
    encode_properties,
)
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.protocol.wire.header_codec import encode_header, fast_header
from twisted_mq.remoting.channel import Answer, Channel
from twisted_mq.storage.interfaces import InnerMessage, PutResult, PutStatus

PUSH_SECONDS = 10.0
"""The time that the client that asked has to acknowledge its reply (Apache: Broker2Client.callClient)."""


class ReplyParts(Protocol):
    """The parts of the broker that replies use."""

    options: BrokerOptions
    wall_ms: Callable[[], int]
    random: Random
    timed_put: TimedCall[[InnerMessage], PutResult]
    producers: ProducerManager
    statistics: BrokerStatistics
    durability: Durability

    @property
    def address(self) -> str: ...

    @property
    def store_host(self) -> bytes: ...

    def dispatch(self) -> bool: ...


class ReplyMessageProcessor:
    """Delivers replies. It checks header and topic as a send does, and refuses in the same way."""

    log = Logger()

    def __init__(self, broker: ReplyParts, checks: SendChecks, answers: SendAnswers) -> None:
        self._broker = broker
        self._checks = checks
        self._answers = answers
        self.processors = {
            RequestCode.SEND_REPLY_MESSAGE: functools.partial(self.reply, fast_header(SendMessageRequestHeader)),
            RequestCode.SEND_REPLY_MESSAGE_V2: functools.partial(self.reply, fast_header(SendMessageRequestHeaderV2)),
        }

    def reply(self, read: Read, channel: Channel, command: RemotingCommand) -> Answer:
        """Deliver a reply; `read` parses its header. Raises BrokerError."""
        header = read(command)
        try:
            self._check_topic(header.topic)
            target = self._checks.target(channel, header)
            if target.order_mode is not None:
                raise BrokerError(
                    ResponseCode.NO_PERMISSION, f"topic {target.topic} is ordered, and accepts no replies"
                )
            if len(header.properties or "") > MAX_PROPERTIES_BYTES:
                raise not_stored(self._broker.options, PROPERTIES_TOO_LONG)
        except BrokerError as error:
            raise self._answers.refused(error) from error
        queue_id = header.queue_id
        if queue_id < 0:
            queue_id = self._broker.random.randrange(target.write_queue_nums or 1)
        sent = decode_properties(header.properties or "")
        properties = {name: value for name, value in sent.items() if name not in BROKERS_PROPERTIES} | {
            PROPERTY_MSG_REGION: self._broker.options.region_id,
            PROPERTY_TRACE_SWITCH: value_text(self._broker.options.trace_on),
        }
        pushed = self._push(channel, command, header, properties)
        return defer.Deferred.fromCoroutine(self._answer(pushed, channel, command, header, properties, queue_id))

    def _check_topic(self, topic: str) -> None:
        """Raise BrokerError for a topic other than the cluster's reply topic, because a reply needs no right on its topic."""
        self._checks.check_name(topic)
        options = self._broker.options
        own = reply_topic(options.broker_cluster_name)
        if topic != own and not options.reply_to_any_topic_enable:
            raise BrokerError(ResponseCode.NO_PERMISSION, f"topic {topic}: replies are sent to topic {own}")

    # the push

    def _push(
        self, channel: Channel, command: RemotingCommand, header: SendHeader, properties: dict[str, str]
    ) -> defer.Deferred[str | None]:
        """Push the reply. Fires with None when the client that asked has taken it, otherwise with the reason."""
        client_id = properties.get(PROPERTY_MESSAGE_REPLY_TO_CLIENT)
        if client_id is None:
            return defer.succeed(f"reply message properties[{PROPERTY_MESSAGE_REPLY_TO_CLIENT}] is null")
        asking = self._broker.producers.find_channel(client_id)
        if asking is None:
            return defer.succeed(f"push reply message fail, channel of <{client_id}> not found.")
        request = RemotingCommand.request(
            RequestCode.PUSH_REPLY_MESSAGE_TO_CLIENT, self._push_fields(channel, header, properties), command.body
        )
        pushed = asking.send_request(request, PUSH_SECONDS)
        return pushed.addCallbacks(self._taken, self._not_taken, callbackArgs=(client_id,), errbackArgs=(client_id,))

    def _push_fields(self, channel: Channel, header: SendHeader, properties: dict[str, str]) -> dict[str, str]:
        now = self._broker.wall_ms()
        return encode_header(
            ReplyMessageRequestHeader(
                producer_group=header.producer_group,
                topic=header.topic,
                default_topic=header.default_topic,
                default_topic_queue_nums=header.default_topic_queue_nums,
                queue_id=header.queue_id,
                sys_flag=header.sys_flag,
                born_timestamp=header.born_timestamp,
                flag=header.flag,
                properties=encode_properties({**properties, PROPERTY_PUSH_REPLY_TIME: str(now)}),
                reconsume_times=header.reconsume_times,
                unit_mode=bool(header.unit_mode),
                born_host=channel.address,
                store_host=self._broker.address,
                store_timestamp=now,
            )
        )

    def _taken(self, answer: RemotingCommand, client_id: str) -> str | None:
        if answer.code == ResponseCode.SUCCESS:
            return None
        return self._failed(client_id, f"code {answer.code} {answer.remark}")

    def _not_taken(self, reason: failure.Failure, client_id: str) -> str:
        return self._failed(client_id, reason.getErrorMessage())

    def _failed(self, client_id: str, reason: str) -> str:
        self.log.warn("reply not delivered to the client: client={c} {reason}", c=client_id, reason=reason)
        return f"push reply message to {client_id}fail."

    # the answer

    async def _answer(
        self,
        pushed: defer.Deferred[str | None],
        channel: Channel,
        command: RemotingCommand,
        header: SendHeader,
        properties: dict[str, str],
        queue_id: int,
    ) -> RemotingCommand:
        """Report success or why the push failed and, if the reply is stored, where it is."""
        remark = await pushed
        fields = {
            PROPERTY_MSG_REGION: properties[PROPERTY_MSG_REGION],
            PROPERTY_TRACE_SWITCH: value_text(self._broker.options.trace_on),
        }
        code = ResponseCode.SUCCESS if remark is None else ResponseCode.SYSTEM_ERROR
        if remark is None:
            fields |= encode_header(SendMessageResponseHeader(msg_id="0", queue_id=queue_id, queue_offset=0))
        if not self._broker.options.store_reply_message_enable:
            return command.answer(code, remark, fields)
        fields |= self._store(channel, command, header, properties, queue_id)
        answer = self._broker.durability.acknowledged(command.answer(code, remark, fields))
        return answer if isinstance(answer, RemotingCommand) else await answer

    def _store(
        self, channel: Channel, command: RemotingCommand, header: SendHeader, properties: dict[str, str], queue_id: int
    ) -> dict[str, str]:
        """Store the reply and return where it is; empty if the store refuses it, since the reply was pushed all the same."""
        tags = properties.get(PROPERTY_TAGS)
        message = InnerMessage(
            header.topic,
            queue_id,
            command.body,
            utf8(encode_properties(properties)),
            properties,
            tags_code(tags) if tags else 0,
            header.flag,
            without_commit(header.sys_flag),
            header.born_timestamp,
            channel.packed_address,
            header.reconsume_times or 0,
        )
        result = self._broker.timed_put.call(message)
        if result.status is not PutStatus.PUT_OK:
            self.log.warn("reply not stored: topic={t} status={s}", t=header.topic, s=result.status.name)
            return {}
        size = result.end_offset - result.physical_offset
        self._broker.statistics.count_put(header.topic, 1, size, queue_id=queue_id)
        self._broker.dispatch()
        message_id = offset_message_id(self._broker.store_host, result.physical_offset)
        return encode_header(
            SendMessageResponseHeader(msg_id=message_id, queue_id=queue_id, queue_offset=result.queue_offset)
        )
