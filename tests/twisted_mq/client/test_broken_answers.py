"""Brokers that close in the middle of an answer, or answer with bytes that are none: named, tried again, nothing lost."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.support.client_case import ClientCase
from twisted_mq.client import (
    ConsumeFromWhere,
    ConsumerOptions,
    LitePullConsumer,
    Message,
    Producer,
    ProducerOptions,
    RemotingError,
    SendFailed,
)
from twisted_mq.protocol.codes import RequestCode
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.protocol.wire.framing import encode_frame
from twisted_mq.remoting.socket_channel import SocketChannel

FIRST = ConsumerOptions(consume_from_where=ConsumeFromWhere.FIRST_OFFSET)
GARBAGE = b"HTTP/1.1 400 Bad Request\r\n\r\n"


def half(answer: RemotingCommand) -> bytes:
    frame = encode_frame(answer)
    return frame[: len(frame) // 2]


class BrokenAnswers(ClientCase):
    def setUp(self) -> None:
        super().setUp()
        self.broker = self.cluster.add_broker("broker-a", {"T": 1})

    def break_answer(self, code: RequestCode, broken: Callable[[RemotingCommand], bytes]) -> list[RemotingCommand]:
        """Have the next answer to such a request be these bytes, and the connection's end; the requests so far."""
        processors = self.broker.factory.traffic.processors
        sound: Any = processors[code]
        struck: list[RemotingCommand] = []

        def once(channel: SocketChannel, request: RemotingCommand) -> None:
            struck.append(request)
            processors[code] = sound
            channel.transport.write(broken(sound(channel, request)))
            channel.transport.loseConnection()

        processors[code] = once
        return struck

    def producer(self, retry_times: int) -> Producer:
        options = ProducerOptions(retry_times=retry_times)
        producer = Producer(self.clock, "g", options=options, **self.client_arguments())
        self.run_to_end(producer.start())
        return producer

    def test_a_send_is_tried_again_over_a_new_connection(self) -> None:
        for broken in (half, lambda answer: GARBAGE):
            producer = self.producer(1)
            struck = self.break_answer(RequestCode.SEND_MESSAGE_V2, broken)
            result = self.run_to_end(producer.send(Message("T", b"x")), seconds=0.25)
            self.assertEqual((len(struck), result.queue_offset % 2), (1, 1))  # the first one was stored, too
            self.run_to_end(producer.stop())
        self.assert_no_timers()

    def test_a_send_without_further_tries_names_broker_and_reason(self) -> None:
        for broken in (half, lambda answer: GARBAGE):
            producer = self.producer(0)
            self.break_answer(RequestCode.SEND_MESSAGE_V2, broken)
            error = self.run_to_failure(producer.send(Message("T", b"x")), SendFailed)
            self.assertIn("broker-a", str(error))
            self.assertIsInstance(error.__cause__, RemotingError)
            self.run_to_end(producer.stop())

    def test_a_pull_is_made_again_and_nothing_is_passed_over(self) -> None:
        for turn, broken in enumerate((half, lambda answer: GARBAGE)):
            self.broker.put("T", 0, b"m%d" % turn)
            struck = self.break_answer(RequestCode.LITE_PULL_MESSAGE, broken)
            consumer = LitePullConsumer(self.clock, "g", options=FIRST, **self.client_arguments())
            consumer.subscribe("T")
            self.run_to_end(consumer.start())
            self.advance(5)
            polled = self.run_to_end(consumer.poll(0))
            self.assertEqual(([message.body for message in polled], len(struck)), ([b"m%d" % turn], 1))
            self.run_to_end(consumer.stop())
        self.assert_no_timers()
