"""Message traces of producers and consumers: what is recorded, and when it leaves."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import attrs

from tests.support.client_case import ClientCase
from twisted_mq.client import (
    ConsumeFromWhere,
    ConsumeOrderlyStatus,
    ConsumerOptions,
    ConsumeStatus,
    Message,
    Producer,
    ProducerOptions,
    PushConsumer,
    TransactionProducer,
    TransactionState,
)
from twisted_mq.client.producing.message_trace import BATCH, MOST_WAITING
from twisted_mq.client.producing.sender import Sender
from twisted_mq.protocol.codes import RequestCode
from twisted_mq.protocol.errors import BrokerError
from twisted_mq.protocol.headers import CheckTransactionStateRequestHeader
from twisted_mq.protocol.layouts.record_codec import decode_message
from twisted_mq.protocol.messages.message import MessageExt
from twisted_mq.protocol.messages.trace import ConsumeEndTrace, ConsumeStartTrace, PublishTrace, Trace, decode_traces
from twisted_mq.protocol.text.properties import decode_properties

TRACES = "RMQ_SYS_TRACE_TOPIC"


class TraceCase(ClientCase):
    def setUp(self) -> None:
        super().setUp()
        self.broker = self.cluster.add_broker("broker-a", {"T": 1, TRACES: 1, "%RETRY%g": 1})

    def producer(self, **options: Any) -> Producer:
        producer = Producer(
            self.clock, "g", options=ProducerOptions(message_trace=True, **options), **self.client_arguments()
        )
        self.run_to_end(producer.start())
        return producer

    def sent(self, topic: str = TRACES) -> list[list[Trace]]:
        """The records of each message of the trace topic."""
        return [list(decode_traces(stored.body)) for stored in self.broker.queues.get((topic, 0), [])]

    def traces(self) -> list[Trace]:
        return [trace for message in self.sent() for trace in message]


class Producers(TraceCase):
    def test_a_send_is_traced_after_five_seconds(self) -> None:
        result = self.run_to_end(self.producer().send(Message("T", b"hello", tags="A", keys=["k1", "k2"])))
        self.advance(4.75)
        self.assertEqual(self.sent(), [])
        self.advance(0.5)
        ((trace,),) = self.sent()
        assert isinstance(trace, PublishTrace)
        self.assertEqual(
            attrs.evolve(trace, timestamp=0),
            PublishTrace(
                region_id="DefaultRegion", group="g", topic="T", msg_id=result.msg_id, tags="A", keys="k1 k2",
                store_host=self.broker.address, body_length=5, offset_msg_id=result.offset_msg_id,
            ),
        )  # fmt: skip
        (stored,) = self.broker.queues[TRACES, 0]
        self.assertEqual(stored.properties["KEYS"].split(), [result.msg_id, "k1", "k2"])
        header = self.broker.headers(RequestCode.SEND_MESSAGE_V2)[-1]
        self.assertEqual(header.producer_group, "_INNER_TRACE_PRODUCER-g-PRODUCE-1")

    def test_a_failure_that_nobody_expected_is_not_the_end_of_tracing(self) -> None:
        producer = self.producer()
        self.run_to_end(producer.send(Message("T", b"lost")))
        with (
            patch.object(Sender, "deliver", side_effect=KeyError("route")),
            self.assertLogs("twisted_mq.periodic", "CRITICAL") as logged,
        ):
            self.advance(6)
        result = self.run_to_end(producer.send(Message("T", b"traced")))
        self.advance(6)
        self.assertEqual(len(logged.output), 1)
        self.assertEqual([trace.msg_id for trace in self.traces() if isinstance(trace, PublishTrace)], [result.msg_id])

    def test_a_batch_is_one_record_found_by_each_of_its_ids(self) -> None:
        messages = [Message("T", b"x", keys=f"k{number}") for number in range(2)]
        producer = self.producer()
        result = self.run_to_end(producer.send_batch(messages))
        self.run_to_end(producer.stop())
        ((trace,),) = self.sent()
        assert isinstance(trace, PublishTrace)
        self.assertEqual((trace.msg_id, trace.keys, trace.tags), (result.msg_id, None, None))
        keys = self.broker.queues[TRACES, 0][0].properties["KEYS"].split()
        self.assertEqual(keys, [*result.msg_id.split(","), "k0", "k1"])

    def test_the_type_says_what_was_delayed(self) -> None:
        producer = self.producer()
        self.run_to_end(producer.send(Message("T", b"x", delay_time_level=3)))
        self.run_to_end(producer.stop())
        self.assertEqual([trace.message_type for trace in self.traces() if isinstance(trace, PublishTrace)], [3])

    def test_what_waits_leaves_when_the_producer_stops(self) -> None:
        producer = self.producer(trace_topic="MyTraces")
        self.cluster.add_route("MyTraces", "broker-a", 1)
        self.run_to_end(producer.send(Message("T", b"x")))
        self.run_to_end(producer.stop())
        self.assertEqual([len(message) for message in self.sent("MyTraces")], [1])
        self.assert_no_timers()

    def test_many_records_do_not_wait_for_the_time(self) -> None:
        producer = self.producer()
        for _ in range(BATCH):
            self.run_to_end(producer.send(Message("T", b"x")))
        self.assertEqual([len(message) for message in self.sent()], [BATCH])

    def test_traces_that_cannot_be_sent_cost_nothing_but_themselves(self) -> None:
        producer = self.producer()
        del self.cluster.routes[TRACES]
        for _ in range(MOST_WAITING // 8):
            self.run_to_end(producer.send(Message("T", b"x")))
        self.run_to_end(producer.stop())
        self.assertEqual(len(self.broker.queues["T", 0]), MOST_WAITING // 8)

    def test_failed_sends_and_traces_themselves_are_not_traced(self) -> None:
        producer = self.producer()
        self.run_to_end(producer.send(Message(TRACES, b"x")))
        self.broker.refuse[RequestCode.SEND_MESSAGE_V2] = BrokerError(13, "illegal")
        self.run_to_failure(producer.send(Message("T", b"x")), BrokerError)
        self.broker.refuse.clear()
        self.run_to_end(producer.stop())
        self.assertEqual(len(self.broker.queues[TRACES, 0]), 1)

    def test_transactions_are_traced_when_they_are_decided_and_when_they_are_checked(self) -> None:
        producer = TransactionProducer(
            self.clock, "g", check=lambda message: TransactionState.ROLLBACK,
            options=ProducerOptions(message_trace=True), **self.client_arguments(),
        )  # fmt: skip
        self.run_to_end(producer.start())
        self.run_to_end(producer.send_in_transaction(Message("T", b"x"), lambda message: TransactionState.UNKNOWN))
        message = decode_message(self.broker.queues["T", 0][0].record)
        header = CheckTransactionStateRequestHeader(tran_state_table_offset=0, commit_log_offset=0)
        self.run_to_end(producer.check_transaction(header, message))
        self.run_to_end(producer.stop())
        half, ended, checked = self.traces()
        self.assertEqual(getattr(half, "message_type", None), 1)
        seen = [(getattr(one, "state", None), getattr(one, "from_check", None)) for one in (ended, checked)]
        self.assertEqual(seen, [("UNKNOW", False), ("ROLLBACK_MESSAGE", True)])


class Consumers(TraceCase):
    def consume(self, answers: list[Any], *, orderly: bool = False, properties: str = "KEYS\x01k\x02") -> list[Trace]:
        """The traces of a consumer whose listener answers so."""

        def listen(messages: list[MessageExt], context: Any) -> Any:
            answer = answers.pop(0)
            if isinstance(answer, Exception):
                raise answer
            return answer

        options = ConsumerOptions(consume_from_where=ConsumeFromWhere.FIRST_OFFSET, message_trace=True)
        consumer = PushConsumer(self.clock, "g", options=options, **self.client_arguments())
        consumer.subscribe("T")
        (consumer.listen_orderly if orderly else consumer.listen)(listen)
        self.run_to_end(consumer.start())
        self.broker.put("T", 0, *[b"x"] * len(answers), properties=f"UNIQ_KEY\x01ID1\x02{properties}")
        self.advance(1)
        self.run_to_end(consumer.stop())
        self.assert_no_timers()
        return self.traces()

    def test_a_call_is_traced_at_its_begin_and_its_end(self) -> None:
        begun, ended = self.consume([ConsumeStatus.CONSUME_SUCCESS])
        assert isinstance(begun, ConsumeStartTrace) and isinstance(ended, ConsumeEndTrace)
        self.assertEqual((begun.group, begun.msg_id, begun.keys, begun.retry_times), ("g", "ID1", "k", 0))
        self.assertEqual((begun.region_id, len(begun.request_id)), ("DefaultRegion", 32))
        self.assertEqual(
            attrs.evolve(ended, timestamp=0),
            ConsumeEndTrace(request_id=begun.request_id, msg_id="ID1", keys="k", group="g"),
        )

    def test_the_end_says_how_the_call_ended(self) -> None:
        refused = [ConsumeStatus.RECONSUME_LATER, RuntimeError("listener"), None]
        traces = self.consume(refused)
        codes = [(one.success, one.context_code) for one in traces if isinstance(one, ConsumeEndTrace)]
        self.assertEqual(sorted(codes), [(False, 2), (False, 3), (False, 4)])
        self.assertEqual(len(self.flushLoggedErrors(RuntimeError)), 1)

    def test_calls_in_order_are_traced_as_well(self) -> None:
        traces = self.consume([ConsumeOrderlyStatus.SUCCESS] * 2, orderly=True)
        self.assertEqual(len(traces), 4)

    def test_messages_without_the_switch_are_left_out(self) -> None:
        self.assertEqual(self.consume([ConsumeStatus.CONSUME_SUCCESS], properties="TRACE_ON\x01false\x02"), [])


class FastPort(ClientCase):
    def test_sends_go_two_ports_below(self) -> None:
        broker = self.cluster.add_broker("broker-a", {"T": 1})
        host, port = broker.address.split(":")
        self.cluster.network.listen(f"{host}:{int(port) - 2}", broker.factory)
        self.cluster.network.close(broker.address)
        producer = Producer(self.clock, "g", options=ProducerOptions(vip_channel=True), **self.client_arguments())
        self.run_to_end(producer.start())
        self.run_to_end(producer.send(Message("T", b"x")))
        self.assertEqual(decode_properties(broker.headers(RequestCode.SEND_MESSAGE_V2)[0].properties)["WAIT"], "true")
