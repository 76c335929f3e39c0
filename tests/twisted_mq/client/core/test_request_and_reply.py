"""Requests that wait for their reply, and replies to requests."""

from __future__ import annotations

from typing import Any

import attrs
from twisted.internet import defer

from tests.support.client_case import ClientCase
from twisted_mq.client import Message, MessageIllegal, Producer, RequestTimeout, SendFailed, reply_message
from twisted_mq.protocol.codes import RequestCode
from twisted_mq.protocol.errors import BrokerError
from twisted_mq.protocol.flags import MessageSysFlag
from twisted_mq.protocol.headers import ReplyMessageRequestHeader
from twisted_mq.protocol.layouts.record_codec import decode_message
from twisted_mq.protocol.messages.compression import compress
from twisted_mq.protocol.messages.message import MessageExt
from twisted_mq.protocol.text.properties import decode_properties, encode_properties
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.protocol.wire.header_codec import encode_header


def push(properties: dict[str, str], **changes: Any) -> RemotingCommand:
    """A reply as a broker hands it on."""
    header = ReplyMessageRequestHeader(
        producer_group="answering",
        topic="C_REPLY_TOPIC",
        default_topic="TBW102",
        default_topic_queue_nums=4,
        queue_id=1,
        sys_flag=MessageSysFlag.COMPRESSED_FLAG,
        born_timestamp=5,
        flag=3,
        properties=encode_properties(properties),
        born_host="10.0.0.7:1234",
        store_host="10.0.1.1:10911",
        store_timestamp=6,
    )
    code = RequestCode.PUSH_REPLY_MESSAGE_TO_CLIENT
    return RemotingCommand.request(code, encode_header(attrs.evolve(header, **changes)), compress(b"pong"))


class Requests(ClientCase):
    def setUp(self) -> None:
        super().setUp()
        self.broker = self.cluster.add_broker("broker-a", {"T": 2, "C_REPLY_TOPIC": 1})
        self.producer = Producer(self.clock, "g", **self.client_arguments())
        self.run_to_end(self.producer.start())

    def ask(self, **options: Any) -> tuple[defer.Deferred[MessageExt], MessageExt]:
        """A request under way, and the message as its consumer gets it."""
        reply = self.begin(self.producer.request(Message("T", b"ping", tags="A"), **options))
        (stored,) = [one for queue in self.broker.queues.values() for one in queue]
        message = decode_message(stored.record)
        message.properties["CLUSTER"] = "C"  # which brokers add
        return reply, message

    def push(self, command: RemotingCommand) -> RemotingCommand:
        return self.run_to_end(self.broker.producers["g"].send_request(command, 3))

    def test_the_request_says_who_waits_and_how_long(self) -> None:
        _, message = self.ask(timeout_seconds=2.5)
        self.assertEqual((message.body, message.tags), (b"ping", "A"))
        names = ("REPLY_TO_CLIENT", "TTL")
        self.assertEqual([message.properties[name] for name in names], [self.producer.client.client_id, "2500"])
        self.assertEqual(len(message.properties["CORRELATION_ID"]), 36)

    def test_the_reply_that_the_broker_brings_is_the_result(self) -> None:
        waiting, message = self.ask()
        properties = reply_message(message, b"pong").properties | {"colour": "red"}
        self.assertEqual(self.push(push(properties)).code, 0)
        reply = self.successResultOf(waiting)
        self.assertEqual((reply.body, reply.topic, reply.queue_id, reply.flag), (b"pong", "C_REPLY_TOPIC", 1, 3))
        self.assertEqual((reply.born_host, reply.properties["colour"]), ("10.0.0.7:1234", "red"))
        self.assertEqual(reply.properties["ARRIVE_TIME"], str(self.producer.client.now_ms()))

    def test_only_the_request_that_a_reply_is_for_ends(self) -> None:
        first, message = self.ask()
        second = self.begin(self.producer.request(Message("T", b"again")))
        self.push(push(reply_message(message, b"pong").properties))
        self.assertEqual(self.successResultOf(first).body, b"pong")
        self.assertNoResult(second)

    def test_no_reply_in_time_is_a_failure_and_a_late_one_is_harmless(self) -> None:
        waiting, message = self.ask(timeout_seconds=2)
        self.advance(1.9)
        self.assertNoResult(waiting)
        self.advance(0.2)
        self.failureResultOf(waiting, RequestTimeout)
        self.assertEqual(self.push(push(reply_message(message, b"pong").properties)).code, 0)

    def test_a_damaged_reply_is_refused(self) -> None:
        self.ask()
        answer = self.push(attrs.evolve(push({}), body=b"no zlib"))
        self.assertEqual(answer.code, 1)

    def test_a_request_that_cannot_be_sent_fails_before_its_reply_is_due(self) -> None:
        self.broker.refuse[RequestCode.SEND_MESSAGE_V2] = BrokerError(1, "disk full")
        self.run_to_failure(self.producer.request(Message("T", b"ping")), SendFailed, seconds=3)

    def test_requests_of_one_key_go_to_one_queue(self) -> None:
        for _ in range(3):
            self.begin(self.producer.request(Message("T", b"ping"), key="order 7"))
        self.assertEqual(sorted(len(queue) for queue in self.broker.queues.values()), [3])

    def test_a_stopped_producer_awaits_no_reply(self) -> None:
        waiting, _ = self.ask(timeout_seconds=60)
        stopped = self.begin(self.producer.stop())
        self.advance(4)
        self.successResultOf(stopped)
        self.failureResultOf(waiting)
        self.assert_no_timers()

    def test_a_reply_is_sent_under_its_own_code(self) -> None:
        _, message = self.ask()
        self.run_to_end(self.producer.send(reply_message(message, b"pong")))
        (header,) = self.broker.headers(RequestCode.SEND_REPLY_MESSAGE_V2)
        self.assertEqual(header.topic, "C_REPLY_TOPIC")
        self.assertEqual(decode_properties(header.properties)["MSG_TYPE"], "reply")

    def test_a_message_that_asks_for_nothing_has_no_reply(self) -> None:
        _, message = self.ask()
        del message.properties["REPLY_TO_CLIENT"]
        with self.assertRaisesRegex(MessageIllegal, "REPLY_TO_CLIENT"):
            reply_message(message, b"pong")
