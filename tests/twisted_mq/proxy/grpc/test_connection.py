"""Tests of a gRPC connection: calls, flow control, deadlines, misbehaving clients. They use a virtual clock and no sockets."""

from __future__ import annotations

import gzip

from google.protobuf.wrappers_pb2 import StringValue
from h2.errors import ErrorCodes
from h2.events import ConnectionTerminated
from h2.settings import SettingCodes
from hyperframe.frame import (
    ContinuationFrame,
    DataFrame,
    GoAwayFrame,
    HeadersFrame,
    PingFrame,
    PriorityFrame,
    RstStreamFrame,
    SettingsFrame,
    WindowUpdateFrame,
)
from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase

from tests.support.grpc_wire import ECHO, MANY, SLOW, TALK, Wire, echo, message, methods
from twisted_mq.protocol.layouts.grpc_frame import GRPC_HEAD
from twisted_mq.proxy import messages as v2
from twisted_mq.proxy.grpc import confirmations
from twisted_mq.proxy.grpc.calls import Method
from twisted_mq.proxy.grpc.framing import frame
from twisted_mq.proxy.grpc.limits import ConnectionLimits
from twisted_mq.proxy.grpc.status import GrpcError, GrpcStatus
from twisted_mq.proxy.grpc.streams import Streams
from twisted_mq.remoting.rotation import CROWD_SECONDS


class CallTests(SynchronousTestCase):
    def test_call_is_answered_with_message_and_status(self):
        wire = Wire(methods())
        stream = wire.call(ECHO, "hello")
        self.assertEqual((wire.texts(stream), wire.status(stream)), (["hello"], (GrpcStatus.OK, "")))
        self.assertTrue(wire.is_ended(stream))
        self.assertEqual((wire.shared.calls, wire.server.calls), (0, 0))

    def test_call_is_answered_the_same_where_its_bytes_come_one_by_one(self):
        wire = Wire(methods())
        stream = wire.begin(ECHO)
        wire.client.send_data(stream, message("hello"), end_stream=True)
        for byte in wire.client.data_to_send():
            wire.send(bytes([byte]))
        wire.exchange()
        self.assertEqual(wire.texts(stream), ["hello"])

    def test_handler_sees_metadata_peer_and_deadline(self):
        seen = []

        def look(call, request):
            seen.append((call.metadata.get("x-mq-client-id"), call.peer[0], call.remaining_seconds()))
            return echo(call, request)

        wire = Wire(methods(echo=look))
        wire.call(ECHO, "x", x_mq_client_id="me", grpc_timeout="1500m")
        self.assertEqual(seen, [("me", "192.168.1.1", 1.5)])

    def test_unknown_method_is_unimplemented_and_the_connection_goes_on(self):
        wire = Wire(methods())
        stream = wire.call("/test.Echo/Nothing", "x")
        self.assertEqual(wire.status(stream)[0], GrpcStatus.UNIMPLEMENTED)
        self.assertEqual(wire.texts(wire.call(ECHO, "y")), ["y"])

    def test_refused_call_that_is_still_sending_is_told_to_stop(self):
        wire = Wire(methods())
        stream = wire.begin("/test.Echo/Nothing")
        wire.exchange()
        self.assertEqual(wire.status(stream)[0], GrpcStatus.UNIMPLEMENTED)
        self.assertEqual(wire.resets(stream), [ErrorCodes.NO_ERROR])

    def test_what_is_no_grpc_gets_an_http_status(self):
        wire = Wire(methods())
        for headers, status in (
            ([(":method", "GET")], "405"),
            ([(":method", "POST"), ("content-type", "text/html")], "415"),
        ):
            stream = wire.client.get_next_available_stream_id()
            given = [*headers, (":scheme", "http"), (":path", ECHO), (":authority", "mq")]
            wire.client.send_headers(stream, sorted(given, key=lambda one: one[0][0] != ":"), end_stream=True)
            wire.exchange()
            self.assertIn(
                (":status", status), [pair for event in wire.events for pair in getattr(event, "headers", ())]
            )

    def test_error_of_a_handler_is_the_status_and_its_text_is_percent_encoded(self):
        def refuse(call, request):
            raise GrpcError(GrpcStatus.INVALID_ARGUMENT, "50% no\n\u00e9")

        wire = Wire(methods(echo=refuse))
        stream = wire.call(ECHO, "x")
        self.assertEqual(wire.status(stream), (GrpcStatus.INVALID_ARGUMENT, "50%25 no%0A%C3%A9"))

    def test_failure_of_a_handler_is_internal_and_logged(self):
        def fail(call, request):
            raise KeyError("oops")

        wire = Wire(methods(echo=fail))
        with self.assertLogs("twisted_mq.proxy.grpc.connection", "CRITICAL"):
            stream = wire.call(ECHO, "x")
        self.assertEqual(wire.status(stream)[0], GrpcStatus.INTERNAL)

    def test_message_that_is_none_is_refused(self):
        wire = Wire(methods())
        for body in (frame(b"\xff\xff"), b"", message("a") + message("b"), message("abc")[:-1], b"\x02\0\0\0\0"):
            stream = wire.begin(ECHO)
            wire.client.send_data(stream, body, end_stream=True)
            wire.exchange()
            self.assertEqual(wire.status(stream)[0], GrpcStatus.INTERNAL, body)

    def test_gzip_message_is_read_and_another_encoding_is_unimplemented(self):
        wire = Wire(methods())
        packed = gzip.compress(StringValue(value="small").SerializeToString())
        stream = wire.begin(ECHO, grpc_encoding="gzip")
        wire.client.send_data(stream, b"\x01" + len(packed).to_bytes(4, "big") + packed, end_stream=True)
        wire.exchange()
        self.assertEqual(wire.texts(stream), ["small"])
        stream = wire.call(ECHO, "x", grpc_encoding="br")
        self.assertEqual(wire.status(stream)[0], GrpcStatus.UNIMPLEMENTED)

    def test_stream_of_answers_and_stream_of_both(self):
        async def count(call, request):
            for number in range(3):
                await call.send(StringValue(value=str(number)))

        def talk(call):
            call.received = lambda one: call.send(StringValue(value=one.value.upper()))
            call.half_closed = call.finish

        wire = Wire(methods(many=count, talk=talk))
        self.assertEqual(wire.texts(wire.call(MANY, "x")), ["0", "1", "2"])
        stream = wire.begin(TALK)
        wire.client.send_data(stream, message("a"))
        wire.exchange()
        self.assertEqual((wire.texts(stream), wire.status(stream)), (["A"], None))
        wire.client.send_data(stream, message("b"), end_stream=True)
        wire.exchange()
        self.assertEqual((wire.texts(stream), wire.status(stream)), (["A", "B"], (GrpcStatus.OK, "")))


class EndTests(SynchronousTestCase):
    """Calls that end otherwise than by their answer."""

    def setUp(self):
        self.cancelled = []

        def slow(call, request):
            return Deferred(self.cancelled.append)

        self.wire = Wire(methods(slow=slow))

    def test_deadline_ends_the_call_and_cancels_its_handler(self):
        stream = self.wire.call(SLOW, "x", grpc_timeout="2S")
        self.wire.clock.advance(1.9)
        self.wire.exchange()
        self.assertIsNone(self.wire.status(stream))
        self.wire.clock.advance(0.2)
        self.wire.exchange()
        self.assertEqual(self.wire.status(stream)[0], GrpcStatus.DEADLINE_EXCEEDED)
        self.assertEqual(len(self.cancelled), 1)

    def test_reset_and_lost_connection_cancel_the_handler(self):
        stream = self.wire.call(SLOW, "x", grpc_timeout="9S")
        self.wire.client.reset_stream(stream, ErrorCodes.CANCEL)
        self.wire.exchange()
        self.assertEqual((len(self.cancelled), self.wire.shared.calls), (1, 0))
        self.wire.call(SLOW, "x", grpc_timeout="9S")
        self.wire.lose()
        self.assertEqual((len(self.cancelled), self.wire.shared.calls), (2, 0))
        self.assertEqual(self.wire.clock.getDelayedCalls(), [])

    def test_request_that_does_not_come_is_given_up(self):
        stream = self.wire.begin(ECHO)
        self.wire.exchange()
        self.wire.clock.advance(60)
        self.wire.factory.look()
        self.wire.exchange()
        self.assertEqual(self.wire.status(stream)[0], GrpcStatus.DEADLINE_EXCEEDED)

    def test_stop_sends_goaway_refuses_new_calls_and_ends_the_open_ones(self):
        self.wire.call(SLOW, "x")
        gone = self.wire.factory.stop(grace_seconds=1)
        late = self.wire.begin(ECHO)
        self.wire.send()
        refused = RstStreamFrame(late, error_code=ErrorCodes.REFUSED_STREAM).serialize()
        goodbye = GoAwayFrame(0, last_stream_id=2**31 - 1, error_code=ErrorCodes.NO_ERROR).serialize()
        self.assertEqual(self.wire.transport.value(), goodbye + refused)
        self.assertFalse(self.wire.is_closed)
        self.wire.clock.advance(1)
        self.assertTrue(self.wire.is_closed)
        self.assertEqual((len(self.cancelled), self.wire.shared.calls), (1, 0))
        self.assertNoResult(gone)
        self.wire.lose()
        self.successResultOf(gone)

    def test_idle_connection_is_closed_and_one_with_a_call_is_not(self):
        self.wire.clock.advance(119)
        self.wire.factory.look()
        self.assertFalse(self.wire.is_closed)
        stream = self.wire.call(SLOW, "x")
        self.wire.clock.advance(30)
        self.wire.factory.look()
        self.assertFalse(self.wire.is_closed)
        self.wire.client.reset_stream(stream)
        self.wire.exchange()
        self.wire.clock.advance(120)
        self.wire.factory.look()
        self.wire.receive()
        self.assertEqual((self.wire.goodbyes(), self.wire.is_closed), ([ErrorCodes.NO_ERROR], True))

    def test_silent_client_with_a_call_is_pinged_and_cut_where_it_does_not_answer(self):
        self.wire.call(SLOW, "x")
        self.wire.clock.advance(60)
        self.wire.factory.look()
        self.wire.exchange()  # h2's client answers
        self.assertEqual(self.wire.pings(), 1)
        self.wire.clock.advance(60)
        self.wire.factory.look()
        self.wire.clock.advance(20)
        with self.assertLogs("twisted_mq.proxy.grpc.connection", "WARNING"):
            self.wire.factory.look()
        self.assertTrue(self.wire.transport.disconnected or self.wire.transport.disconnecting)


class FlowControlTests(SynchronousTestCase):
    def test_answers_wait_for_the_clients_window_and_the_handler_for_its_answers(self):
        sent = []

        async def many(call, request):
            for number in range(4):
                await call.send(StringValue(value="x" * 100_000))
                sent.append(number)

        wire = Wire(methods(many=many), ConnectionLimits(unsent_bytes=150_000))
        stream = wire.begin(MANY)
        wire.client.send_data(stream, message("go"), end_stream=True)
        wire.send()
        wire.receive()
        self.assertEqual((sent, wire.received_bytes(stream)), ([0, 1], 65_535))
        for _ in range(8):
            wire.client.increment_flow_control_window(100_000)
            if wire.status(stream) is None:
                wire.client.increment_flow_control_window(100_000, stream)
            wire.exchange()
        self.assertEqual(([len(one) for one in wire.texts(stream)], sent), ([100_000] * 4, [0, 1, 2, 3]))
        self.assertEqual(wire.status(stream), (GrpcStatus.OK, ""))

    def test_larger_initial_window_of_the_client_sets_waiting_answers_free(self):
        wire = Wire(methods(), connect=False)
        wire.client.local_settings[SettingCodes.INITIAL_WINDOW_SIZE] = 0
        wire.client.initiate_connection()
        wire.client.update_settings({SettingCodes.INITIAL_WINDOW_SIZE: 0})
        wire.exchange()
        stream = wire.call(ECHO, "abc")
        self.assertEqual((wire.texts(stream), wire.status(stream)), ([], None))
        wire.client.update_settings({SettingCodes.INITIAL_WINDOW_SIZE: 1000})
        wire.exchange()
        self.assertEqual((wire.texts(stream), wire.status(stream)), (["abc"], (GrpcStatus.OK, "")))

    def test_stream_whose_window_stays_closed_is_reset(self):
        wire = Wire(methods(), connect=False)
        wire.client.initiate_connection()
        wire.client.update_settings({SettingCodes.INITIAL_WINDOW_SIZE: 0})
        wire.exchange()
        stream = wire.call(ECHO, "abc")
        wire.clock.advance(59)
        wire.factory.look()
        wire.exchange()
        self.assertEqual(wire.resets(stream), [])
        wire.clock.advance(1)
        with self.assertLogs("twisted_mq.proxy.grpc.connection", "WARNING"):
            wire.factory.look()
        wire.exchange()
        self.assertEqual((wire.resets(stream), wire.shared.calls), ([ErrorCodes.CANCEL], 0))
        self.assertEqual(wire.shared.budget.unsent_bytes, 0)

    def test_client_that_does_not_read_is_not_read_and_its_answers_wait(self):
        wire = Wire(methods())
        wire.server.pauseProducing()
        self.assertEqual(wire.transport.producerState, "paused")
        stream = wire.call(ECHO, "abc")
        self.assertEqual(wire.texts(stream), [])
        wire.server.resumeProducing()
        wire.exchange()
        self.assertEqual((wire.texts(stream), wire.transport.producerState), (["abc"], "producing"))

    def test_large_request_passes_the_servers_windows(self):
        wire = Wire(methods())
        text = "x" * 3_000_000
        stream = wire.upload(ECHO, message(text))
        wire.exchange()
        for _ in range(60):
            wire.client.increment_flow_control_window(65_535)
            if wire.status(stream) is None:
                wire.client.increment_flow_control_window(65_535, stream)
            wire.exchange()
        self.assertEqual(wire.texts(stream), [text])

    def test_length_past_the_limit_is_refused_before_its_bytes_come(self):
        wire = Wire(methods(), ConnectionLimits(message_bytes=1000))
        stream = wire.begin(ECHO)
        wire.client.send_data(stream, b"\0\x7f\xff\xff\xff")
        wire.exchange()
        self.assertEqual(wire.status(stream)[0], GrpcStatus.RESOURCE_EXHAUSTED)
        packed = gzip.compress(bytes(100_000))
        stream = wire.begin(ECHO, grpc_encoding="gzip")
        wire.client.send_data(stream, b"\x01" + len(packed).to_bytes(4, "big") + packed, end_stream=True)
        wire.exchange()
        self.assertEqual(wire.status(stream)[0], GrpcStatus.RESOURCE_EXHAUSTED)


class AttackTests(SynchronousTestCase):
    """Each is cut off, and a client beside it is served."""

    def assert_cut(self, wire: Wire, *errors: ErrorCodes) -> None:
        wire.receive()
        self.assertTrue(wire.is_closed)
        self.assertEqual(tuple(wire.goodbyes()), errors)
        self.assertEqual((wire.shared.calls, wire.server.calls), (0, 0))

    def head(self, wire: Wire, stream: int, path: str = ECHO) -> bytes:
        """A HEADERS frame that does not depend on those before."""
        block = wire.client.encoder.encode(wire.headers(path))
        return HeadersFrame(stream, data=block, flags=["END_HEADERS"]).serialize()

    def test_rapid_resets(self):
        calls = []
        wire = Wire(methods(talk=lambda call: calls.append(call)))
        with self.assertLogs("twisted_mq.proxy.grpc.connection", "WARNING"):
            for stream in range(1, 2 * 1100, 2):
                wire.send(self.head(wire, stream, TALK) + RstStreamFrame(stream, error_code=8).serialize())
                if wire.is_closed:
                    break
        self.assert_cut(wire, ErrorCodes.ENHANCE_YOUR_CALM)
        self.assertLessEqual(len(calls), 1001)

    def test_resets_at_the_pace_of_an_honest_client_are_taken(self):
        wire = Wire(methods(talk=lambda call: None))
        for stream in range(1, 2 * 3000, 2):
            wire.send(self.head(wire, stream, TALK) + RstStreamFrame(stream, error_code=8).serialize())
            wire.clock.advance(0.04)
        self.assertFalse(wire.is_closed)

    def test_priorities_in_the_headers_of_calls_are_not_counted(self):
        """Node's client has one in each."""
        wire = Wire(methods())
        for stream in range(1, 2 * 1200, 2):
            block = wire.client.encoder.encode(wire.headers(ECHO))
            head = HeadersFrame(stream, data=block, flags=["END_HEADERS", "PRIORITY"], stream_weight=16).serialize()
            wire.send(head + DataFrame(stream, data=message("x"), flags=["END_STREAM"]).serialize())
        self.assertFalse(wire.is_closed)

    def test_call_that_is_reset_in_the_read_that_brings_it_costs_nothing_more(self):
        wire = Wire(methods())
        wire.send(
            SettingsFrame(0, settings={SettingCodes.MAX_CONCURRENT_STREAMS: 0}).serialize()
        )  # as grpcio's clients
        data = self.head(wire, 1) + DataFrame(1, data=message("x"), flags=["END_STREAM"]).serialize()
        data += RstStreamFrame(1, error_code=8).serialize()
        for stream in (3, 5):
            data += self.head(wire, stream, "/test.Echo/None") + RstStreamFrame(stream, error_code=8).serialize()
        wire.send(data)
        self.assertEqual((wire.shared.calls, wire.is_closed), (0, False))

    def test_floods_of_frames(self):
        for frames in (
            PingFrame(0, opaque_data=b"12345678").serialize(),
            SettingsFrame(0, settings={4: 70_000}).serialize(),
            PriorityFrame(1, stream_weight=16).serialize() * 6,
        ):
            wire = Wire(methods())
            with self.assertLogs("twisted_mq.proxy.grpc.connection", "WARNING"):
                wire.send(frames * 200)
            self.assert_cut(wire, ErrorCodes.ENHANCE_YOUR_CALM)

    def test_empty_data_frames(self):
        wire = Wire(methods())
        wire.send(self.head(wire, 1))
        with self.assertLogs("twisted_mq.proxy.grpc.connection", "WARNING"):
            wire.send(DataFrame(1).serialize() * 1100)
        self.assert_cut(wire, ErrorCodes.ENHANCE_YOUR_CALM)

    def test_continuation_flood(self):
        wire = Wire(methods())
        block = wire.client.encoder.encode(wire.headers(ECHO))
        with self.assertLogs("twisted_mq.proxy.grpc.connection", "WARNING"):
            wire.send(HeadersFrame(1, data=block).serialize() + ContinuationFrame(1, data=b"").serialize() * 100)
        self.assert_cut(wire, ErrorCodes.PROTOCOL_ERROR)

    def test_header_bomb(self):
        """A long header in HPACK's table is named again and again, by one byte each time."""
        wire = Wire(methods())
        block = wire.client.encoder.encode([*wire.headers(ECHO), ("x-bomb", "a" * 3000)])
        with self.assertLogs("twisted_mq.proxy.grpc.connection", "WARNING"):
            wire.send(HeadersFrame(1, data=block + b"\xbe" * 5000, flags=["END_HEADERS"]).serialize())
        self.assert_cut(wire, ErrorCodes.ENHANCE_YOUR_CALM)

    def test_more_streams_than_allowed(self):
        wire = Wire(methods(talk=lambda call: None), ConnectionLimits(streams=10))
        with self.assertLogs("twisted_mq.proxy.grpc.connection", "WARNING"):
            for stream in range(1, 24, 2):
                if not wire.is_closed:
                    wire.send(self.head(wire, stream, TALK))
        wire.receive()
        self.assertTrue(wire.is_closed)

    def test_calls_past_the_servers_limit_are_refused(self):
        wire = Wire(methods(talk=lambda call: None), ConnectionLimits(calls=10))
        for _ in range(10):
            wire.begin(TALK)
        wire.exchange()
        stream = wire.call(ECHO, "x")
        self.assertEqual((wire.status(stream)[0], wire.shared.calls), (GrpcStatus.RESOURCE_EXHAUSTED, 10))

    def test_message_of_very_many_fields_is_refused_before_it_is_parsed(self):
        parsed = []
        request = v2.SendMessageRequest

        class Watched:
            DESCRIPTOR = request.DESCRIPTOR

            @staticmethod
            def FromString(data):
                parsed.append(len(data))
                return request.FromString(data)

        method = Method(Watched, lambda call, asked: StringValue(value=str(len(asked.messages))))
        wire = Wire({ECHO: method})
        for data, status in (
            (b"\x0a\x00" * 32_768, GrpcStatus.OK),
            (b"\x0a\x00" * 40_001, GrpcStatus.RESOURCE_EXHAUSTED),
            (b"\x0a\x82\x80\x08" + b"\x12\x00" * 65_537, GrpcStatus.RESOURCE_EXHAUSTED),
            (b"\x7b" * 70_000, GrpcStatus.RESOURCE_EXHAUSTED),
        ):
            stream = wire.upload(ECHO, frame(data))
            wire.exchange()
            self.assertEqual((wire.status(stream) or [None])[0], status)
        self.assertEqual(parsed, [65_536])
        self.assertEqual((wire.status(wire.call(ECHO, frame(b""))) or [None])[0], GrpcStatus.OK)

    def test_messages_that_protobuf_cannot_read_end_their_call_alone(self):
        """Groups nested too deep, lengths past the end and of 2^63, a number of eleven bytes."""
        wire = Wire({ECHO: Method(v2.SendMessageRequest, lambda call, asked: StringValue(value="served"))})
        for data in (
            b"\x7b" * 5000 + b"\x7c" * 5000,
            b"\x0a\xff\xff\xff\xff\x07",
            b"\x0a" + b"\xff" * 9 + b"\x7f",
            b"\xff" * 11,
            b"\x0f",
            b"\x0a\x02\x12\x09",
        ):
            self.assertEqual((wire.status(wire.call(ECHO, frame(data))) or [None])[0], GrpcStatus.INTERNAL, data[:8])
        self.assertFalse(wire.is_closed)

    def test_what_is_no_http2(self):
        for data in (b"GET / HTTP/1.1\r\n\r\n" * 3, b"\0" * 100):
            wire = Wire(methods(), connect=False)
            with self.assertLogs("twisted_mq.proxy.grpc.connection", "WARNING"):
                wire.send(data)
            self.assertTrue(wire.is_closed)

    def test_parts_of_requests_that_take_too_much_memory_cost_the_oldest_connection(self):
        wire = Wire(methods())
        wire.shared.budget.options.max_incomplete_bytes = 100_000
        stream = wire.begin(ECHO)
        wire.client.send_data(stream, message("x" * 150_000)[:16_000])
        wire.exchange()
        for _ in range(5):
            wire.client.send_data(stream, b"x" * 16_000)
            wire.exchange()
        self.assertFalse(wire.transport.disconnected)
        wire.client.send_data(stream, b"x" * 16_000)
        with self.assertLogs("twisted_mq.proxy.grpc.connection", "WARNING"):
            wire.send()
        self.assertTrue(wire.transport.disconnecting or wire.transport.disconnected)
        wire.lose()
        self.assertEqual(wire.shared.budget.incomplete_bytes, 0)


class PingTests(SynchronousTestCase):
    PING = PingFrame(0, opaque_data=b"12345678").serialize()

    def test_client_that_pings_too_often_is_told_to_wait_longer(self):
        wire = Wire(methods())
        with self.assertLogs("twisted_mq.proxy.grpc.connection", "WARNING"):
            wire.send(self.PING * 101)
        wire.receive()
        [goodbye] = [one for one in wire.events if isinstance(one, ConnectionTerminated)]
        self.assertEqual(
            (goodbye.error_code, goodbye.additional_data), (ErrorCodes.ENHANCE_YOUR_CALM, b"too_many_pings")
        )

    def test_pings_between_answers_are_not_too_many(self):
        """Clients ping to measure their bandwidth, once for each answer that they receive."""
        wire = Wire(methods())
        for number in range(300):
            self.assertEqual(wire.texts(wire.call(ECHO, str(number))), [str(number)])
            wire.send(self.PING)
        self.assertEqual(wire.goodbyes(), [])


class CompressionTests(SynchronousTestCase):
    LONG = "text " * 1000

    def bytes_of_answer(self, **headers):
        wire = Wire(methods(many=_twice))
        packed = gzip.compress(StringValue(value=self.LONG).SerializeToString())
        sizes = []
        for path, answers in ((ECHO, [self.LONG]), (MANY, [self.LONG, "short"])):
            stream = wire.call(path, GRPC_HEAD.pack(1, len(packed)) + packed, grpc_encoding="gzip", **headers)
            self.assertEqual(wire.texts(stream), answers)
            sizes.append(wire.received_bytes(stream))
        return sizes

    def test_answers_are_compressed_for_a_client_that_compresses_and_accepts_it(self):
        echo_bytes, many_bytes = self.bytes_of_answer(grpc_accept_encoding="identity, deflate,gzip")
        self.assertLess(echo_bytes, 200)
        self.assertEqual(many_bytes - echo_bytes, len(message("short")))

    def test_answers_are_plain_for_all_others(self):
        for headers in ({}, {"grpc_accept_encoding": "identity"}):
            self.assertGreater(self.bytes_of_answer(**headers)[0], len(self.LONG))
        wire = Wire(methods())
        stream = wire.call(ECHO, self.LONG, grpc_accept_encoding="gzip")
        self.assertGreater(wire.received_bytes(stream), len(self.LONG))


async def _twice(call, request):
    await call.send(request)
    await call.send(StringValue(value="short"))


class SliceTests(SynchronousTestCase):
    """Many calls in one read are handled in slices, with others' turns between them."""

    def test_what_is_left_of_a_read_is_handled_in_later_turns(self):
        wire = Wire(methods())
        streams = []
        for _ in range(200):
            stream = wire.begin(ECHO)
            wire.client.send_data(stream, message("x" * 50), end_stream=True)
            streams.append(stream)
        seconds = iter(range(10**6))
        wire.server._seconds = lambda: next(seconds)
        wire.send(wire.client.data_to_send())
        self.assertTrue(wire.server._unread)
        self.assertEqual(wire.transport.producerState, "paused")
        self.assertLess(sum(bool(wire.texts(stream)) for stream in streams), 100)
        wire.clock.advance(0)
        wire.exchange()
        self.assertEqual(wire.transport.producerState, "producing")
        self.assertEqual([wire.texts(stream) for stream in streams], [["x" * 50]] * 200)

    def test_a_read_after_many_others_of_a_poll_waits_for_its_turn(self):
        wire = Wire(methods())
        wire.clock.rightNow += 1.0
        self.assertFalse(wire.shared.rotation.is_crowded(wire.clock.seconds()))
        wire.clock.rightNow += CROWD_SECONDS
        stream = wire.begin(ECHO)
        wire.client.send_data(stream, message("late"), end_stream=True)
        wire.send()
        self.assertEqual((wire.transport.value(), wire.transport.producerState), (b"", "paused"))
        wire.exchange()
        self.assertEqual((wire.texts(stream), wire.transport.producerState), (["late"], "producing"))

    def test_a_connection_that_is_lost_leaves_no_turn(self):
        wire = Wire(methods())
        wire.server._unread = b"x"
        wire.server._wait()
        wire.server.connectionLost()
        wire.clock.advance(0)
        self.assertEqual(wire.server._unread, b"")


class TakenTests(SynchronousTestCase):
    """Notifications that a client has read its answers."""

    def setUp(self) -> None:
        self.taken: list[bool] = []

        async def many(call, request):
            call.when_taken(self.taken.append)
            await call.send(StringValue(value=request.value))

        self.wire = Wire(methods(many=many))

    def answered(self) -> int:
        """A call whose answer has left the server; its client has not read it."""
        stream = self.wire.begin(MANY)
        self.wire.client.send_data(stream, message("x"), end_stream=True)
        self.wire.send()
        self.wire.clock.advance(0)
        return stream

    def test_answer_of_the_ping_behind_them_shows_it(self):
        self.answered()
        self.assertEqual(self.taken, [])
        self.wire.exchange()
        self.assertEqual((self.taken, self.wire.pings()), ([True], 1))

    def test_connection_that_is_lost_before_shows_the_opposite(self):
        self.answered()
        self.wire.lose()
        self.assertEqual(self.taken, [False])

    def test_client_that_reset_the_call_meanwhile_has_not_taken_them(self):
        stream = self.answered()
        self.wire.client.reset_stream(stream, ErrorCodes.CANCEL)
        self.wire.exchange()
        self.assertEqual(self.taken, [False])

    def test_call_that_is_reset_before_its_end_has_not_been_taken(self):
        async def many(call, request):
            call.when_taken(self.taken.append)
            await Deferred()

        self.wire = Wire(methods(many=many))
        stream = self.wire.call(MANY, "x")
        self.wire.client.reset_stream(stream)
        self.wire.exchange()
        self.assertEqual(self.taken, [False])

    def test_answers_that_wait_for_the_clients_window_are_not_taken(self):
        self.wire = Wire(self.wire.shared.methods, connect=False)
        self.wire.client.local_settings[SettingCodes.INITIAL_WINDOW_SIZE] = 0
        self.wire.client.initiate_connection()
        self.wire.client.update_settings({SettingCodes.INITIAL_WINDOW_SIZE: 0})
        self.wire.exchange()
        self.wire.call(MANY, "x")
        self.assertEqual((self.taken, self.wire.pings()), ([], 0))
        self.wire.client.update_settings({SettingCodes.INITIAL_WINDOW_SIZE: 1000})
        self.wire.exchange()
        self.assertEqual(self.taken, [True])

    def test_one_ping_at_a_time_is_on_its_way(self):
        for _ in range(5):
            self.answered()
        self.wire.receive()
        self.assertEqual(self.wire.pings(), 1)
        self.wire.exchange()
        self.assertEqual((self.taken, self.wire.pings()), ([True] * 5, 2))

    def test_client_that_never_answers_the_ping_is_cut(self):
        self.patch(confirmations, "MOST_UNCONFIRMED", 3)
        with self.assertLogs("twisted_mq.proxy.grpc.connection", "WARNING"):
            for _ in range(5):
                self.answered()
        self.assertTrue(self.wire.transport.disconnected)


class ManyStreamsTests(SynchronousTestCase):
    """No frame costs work for each open stream."""

    def setUp(self) -> None:
        self.wire = Wire(methods(talk=lambda call: None, many=self.many))
        for _ in range(200):
            self.wire.call(TALK, end=False)

    async def many(self, call, request):
        await call.send(StringValue(value="x" * 10))

    def test_streams_are_not_gone_through_at_each_call(self):
        class Looked(dict):
            def __iter__(self):
                raise AssertionError("all open streams are gone through")

            keys = values = items = __iter__

        connection = self.wire.server._http2
        connection.streams = Looked(connection.streams)
        for _ in range(100):
            self.wire.call(ECHO, "x")
        self.wire.call("/test.Echo/None", "x")
        self.assertEqual((len(connection.streams), self.wire.is_closed), (200, False))

    def test_reset_streams_make_room_on_a_full_connection(self):
        wire = Wire(methods(talk=lambda call: None), ConnectionLimits(streams=3))
        for _ in range(3):
            wire.call(TALK, end=False)
        wire.client.reset_stream(1)
        wire.exchange()
        self.assertEqual(list(wire.server._http2.streams), [3, 5])
        wire.call(TALK, end=False)
        self.assertEqual((list(wire.server._http2.streams), wire.is_closed), ([3, 5, 7], False))

    def test_windows_that_grow_many_times_in_one_read_let_streams_go_on_once(self):
        self.wire.client.update_settings({SettingCodes.INITIAL_WINDOW_SIZE: 0})
        self.wire.exchange()
        for _ in range(20):
            self.wire.call(MANY, "x")
        pumped = []
        pump = Streams._pump
        self.patch(Streams, "_pump", lambda *given: pumped.append(given) or pump(*given))
        self.wire.send(b"".join(WindowUpdateFrame(0, window_increment=1).serialize() for _ in range(300)))
        self.assertEqual(len(pumped), 20)
