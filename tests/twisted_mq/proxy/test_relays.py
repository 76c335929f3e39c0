"""Requests of brokers that gRPC clients answer: on a virtual clock, and from mqadmin to a client and back."""

from __future__ import annotations

import queue
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from tests.support.forged_records import forged_body
from tests.support.grpc_client import GrpcClient as Connected
from tests.support.grpc_client import code
from tests.support.proxied_server import MODES
from twisted_mq.protocol.bodies import ConsumeMessageDirectlyResult, ConsumerRunningInfo, decode_body
from twisted_mq.protocol.codes import RequestCode, ResponseCode
from twisted_mq.protocol.headers import GetConsumerRunningInfoRequestHeader
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.protocol.wire.header_codec import encode_header
from twisted_mq.proxy import messages as v2
from twisted_mq.proxy import relays
from twisted_mq.proxy.client import GrpcClient
from twisted_mq.proxy.options import ProxyOptions
from twisted_mq.proxy.parts import Parts
from twisted_mq.proxy.relays import MOST_TRACE_CHARACTERS, Relays
from twisted_mq.remoting.errors import RemotingSendError, RemotingTooMuchRequestError
from twisted_mq.testing import EmbeddedServer


class Stream:
    """A Telemetry stream. `sent` holds what was sent on it."""

    is_over = False

    def __init__(self) -> None:
        self.sent: list[Any] = []

    def send(self, command: Any) -> None:
        self.sent.append(command)


def status(name: str, message: str = "") -> Any:
    return v2.Status(code=v2.Code.Value(name), message=message)


def trace(nonce: str, text: str | None, **fields: Any) -> Any:
    return v2.TelemetryCommand(thread_stack_trace=v2.ThreadStackTrace(nonce=nonce, thread_stack_trace=text), **fields)


class RelayTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.clock = Clock()
        self.relays = Relays(Parts(ProxyOptions(), None, self.clock, 1))  # type: ignore[arg-type]
        self.client = self.consumer("id")

    def consumer(self, name: str) -> GrpcClient:
        subscription = {"group": {"name": "audit"}, "subscriptions": [{"topic": {"name": "Orders"}}]}
        settings = v2.Settings(
            client_type=v2.ClientType.Value("PUSH_CONSUMER"), user_agent={"version": "5.2.0"}, subscription=subscription
        )
        client = GrpcClient(name, "PYTHON", ("10.0.0.1", 1), b"", self.clock, settings, since=12.5)
        client.telemetry = Stream()  # type: ignore[assignment]
        client.requests = self.relays.ask
        return client

    def sent(self, client: GrpcClient | None = None) -> list[Any]:
        return (client or self.client).telemetry.sent  # type: ignore[union-attr, no-any-return, attr-defined]

    def asked(self, with_threads: bool, seconds: float = 10.0) -> Any:
        header = GetConsumerRunningInfoRequestHeader(consumer_group="audit", client_id="id", jstack_enable=with_threads)
        request = RemotingCommand.request(RequestCode.GET_CONSUMER_RUNNING_INFO, encode_header(header))
        return self.client.send_request(request, seconds)

    def handed(self) -> Any:
        request = RemotingCommand.request(RequestCode.CONSUME_MESSAGE_DIRECTLY, {}, forged_body(0, "Orders", b"one")[1])
        return self.client.send_request(request, 10.0)

    def test_state_of_a_consumer_is_answered_without_asking_it(self) -> None:
        answer = self.successResultOf(self.asked(False))
        info = decode_body(ConsumerRunningInfo, answer.body)
        self.assertEqual(
            info.properties,
            {
                "PROP_CONSUME_TYPE": "CONSUME_PASSIVELY",
                "PROP_CLIENT_VERSION": "5.2.0",
                "PROP_CONSUMER_START_TIMESTAMP": "12500",
            },
        )
        self.assertEqual([one.topic for one in info.subscription_set], ["Orders"])
        self.assertEqual((answer.code, info.jstack, self.sent()), (ResponseCode.SUCCESS, None, []))

    def test_thread_stacks_come_from_the_client(self) -> None:
        waiting = self.asked(True)
        [command] = self.sent()
        nonce = command.print_thread_stack_trace_command.nonce
        self.relays.answer(self.client, nonce, trace(nonce, "main: waits", status=status("OK")))
        info = decode_body(ConsumerRunningInfo, self.successResultOf(waiting).body)
        self.assertEqual((info.jstack, len(info.properties)), ("main: waits", 3))
        self.assertEqual((len(self.relays), self.clock.getDelayedCalls()), (0, []))

    def test_thread_stacks_without_a_status_are_taken(self) -> None:
        waiting = self.asked(True)
        self.relays.answer(self.client, "0", trace("0", "main"))
        self.assertEqual(decode_body(ConsumerRunningInfo, self.successResultOf(waiting).body).jstack, "main")

    def test_thread_stacks_that_are_too_long_are_cut(self) -> None:
        waiting = self.asked(True)
        self.relays.answer(self.client, "0", trace("0", "x" * (MOST_TRACE_CHARACTERS + 7), status=status("OK")))
        found = decode_body(ConsumerRunningInfo, self.successResultOf(waiting).body).jstack or ""
        self.assertEqual(found[MOST_TRACE_CHARACTERS:], "\n(7 more characters)")

    def test_refusal_of_a_client_is_the_answer(self) -> None:
        for name, expected in (
            ("NOT_IMPLEMENTED", ResponseCode.SYSTEM_ERROR),
            ("VERIFY_FIFO_MESSAGE_UNSUPPORTED", ResponseCode.NO_PERMISSION),
            ("CODE_UNSPECIFIED", ResponseCode.SYSTEM_ERROR),
        ):
            for ask in (lambda: self.asked(True), self.handed):
                waiting = ask()
                nonce = str(len(self.sent()) - 1)
                self.relays.answer(self.client, nonce, trace(nonce, None, status=status(name, "no")))
                answer = self.successResultOf(waiting)
                self.assertEqual((answer.code, answer.remark), (expected, f"client id answered {name}: no"))

    def test_status_of_a_number_that_is_not_known_is_the_answer(self) -> None:
        waiting = self.handed()
        self.relays.answer(self.client, "0", trace("0", None, status=v2.Status(code=49_999)))
        self.assertEqual(self.successResultOf(waiting).remark, "client id answered 49999: ")

    def test_message_is_verified_by_the_client(self) -> None:
        for name, expected in (
            ("OK", "CR_SUCCESS"),
            ("FAILED_TO_CONSUME_MESSAGE", "CR_LATER"),
            ("MESSAGE_CORRUPTED", "CR_RETURN_NULL"),
        ):
            waiting = self.handed()
            command = self.sent()[-1].verify_message_command
            self.assertEqual((command.message.body, command.message.topic.name), (b"one", "Orders"))
            self.clock.advance(0.25)
            self.relays.answer(self.client, command.nonce, v2.TelemetryCommand(status=status(name)))
            result = decode_body(ConsumeMessageDirectlyResult, self.successResultOf(waiting).body)
            self.assertEqual(
                (result.consume_result, result.spent_time_mills, result.remark), (expected, 250, "from gRPC client")
            )

    def test_client_that_does_not_answer_is_busy(self) -> None:
        waiting = self.asked(True)
        self.clock.advance(4.9)
        self.assertNoResult(waiting)
        self.clock.advance(0.1)
        answer = self.successResultOf(waiting)
        self.assertEqual((answer.code, answer.remark), (ResponseCode.SYSTEM_BUSY, "call remote timeout"))
        self.relays.answer(self.client, "0", trace("0", "too late", status=status("OK")))

    def test_asker_that_waits_shorter_has_its_answer_by_then(self) -> None:
        waiting = self.asked(True, 2.0)
        self.clock.advance(2.0)
        self.assertEqual(self.successResultOf(waiting).code, ResponseCode.SYSTEM_BUSY)

    def test_answer_of_another_client_is_dropped(self) -> None:
        waiting = self.asked(True)
        self.relays.answer(self.consumer("other"), "0", trace("0", "forged", status=status("OK")))
        self.assertNoResult(waiting)
        self.clock.advance(5)
        self.successResultOf(waiting)

    def test_requests_of_a_client_that_is_gone_fail(self) -> None:
        waiting, other = self.asked(True), self.consumer("other")
        self.relays.forget(other)
        self.assertNoResult(waiting)
        self.relays.forget(self.client)
        self.failureResultOf(waiting, RemotingSendError)
        self.assertEqual((len(self.relays), self.clock.getDelayedCalls()), (0, []))

    def test_cancelled_request_leaves_nothing(self) -> None:
        waiting = self.asked(True)
        waiting.addErrback(lambda _: None)
        waiting.cancel()
        self.assertEqual((len(self.relays), self.clock.getDelayedCalls()), (0, []))

    def test_client_without_a_stream_cannot_be_asked(self) -> None:
        self.client.telemetry = None
        self.failureResultOf(self.asked(True), RemotingSendError)
        self.assertEqual(len(self.relays), 0)

    def test_other_requests_and_unreadable_messages_are_refused(self) -> None:
        for request in (
            RemotingCommand.request(RequestCode.GET_CONSUMER_STATUS_FROM_CLIENT, {}),
            RemotingCommand.request(RequestCode.CONSUME_MESSAGE_DIRECTLY, {}, b"damaged"),
            lambda opaque: b"",
        ):
            self.failureResultOf(self.client.send_request(request, 1.0), RemotingSendError)  # type: ignore[arg-type]
        self.assertEqual(self.sent(), [])

    def test_requests_that_wait_are_limited(self) -> None:
        self.patch(relays, "MOST_OPEN", 2)
        waiting = [self.asked(True) for _ in range(3)]
        self.failureResultOf(waiting.pop(), RemotingTooMuchRequestError)
        self.clock.advance(5)
        for one in waiting:
            self.successResultOf(one)


@pytest.fixture(scope="module", params=list(MODES))
def server(request: pytest.FixtureRequest) -> Iterator[EmbeddedServer]:
    with MODES[request.param](store="memory") as server:
        yield server


def mqadmin(server: EmbeddedServer, *words: str) -> str:
    """Return what mqadmin prints."""
    command = [str(Path(sys.executable).with_name("mqadmin")), *words, "-n", server.namesrv]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    return done.stdout + done.stderr


def answering(client: Connected, answer: Callable[[Any], dict[str, Any]]) -> queue.Queue[Any]:
    """Answer each command that comes to a client. Return the commands."""
    seen: queue.Queue[Any] = queue.Queue()

    def answer_all() -> None:
        while True:
            command = client.told.get()
            seen.put(command)
            client.tell(**answer(command))

    threading.Thread(target=answer_all, daemon=True).start()
    return seen


def test_mqadmin_shows_the_threads_of_a_consumer_and_hands_it_a_message(server: EmbeddedServer) -> None:
    """In cluster mode the broker does not know the consumer, as with Apache's proxy."""
    topic = server.new_topic("relayed")
    with Connected(server.grpc) as client:
        client.settle_consumer(topic, "relayed", client_type="PUSH_CONSUMER")
        [entry] = client.send(topic, b"verify me").entries
        stored = server.messages(topic)[0]

        def answer(command: Any) -> dict[str, Any]:
            if command.WhichOneof("command") == "print_thread_stack_trace_command":
                nonce = command.print_thread_stack_trace_command.nonce
                return {
                    "status": {"code": 20000},
                    "thread_stack_trace": {"nonce": nonce, "thread_stack_trace": "worker-1 RUNNABLE"},
                }
            nonce = command.verify_message_command.nonce
            return {"status": {"code": 60000}, "verify_message_result": {"nonce": nonce}}

        seen = answering(client, answer)
        threads = mqadmin(server, "consumerStatus", "-g", "relayed", "-i", client.client_id, "-s")
        direct = mqadmin(
            server, "queryMsgById", "-t", topic, "-i", stored.msg_id, "-g", "relayed", "-d", client.client_id
        )
        assert code(client.call("NotifyClientTermination", group={"name": "relayed"})) == "OK"
    if type(server) is not EmbeddedServer:
        assert [text.startswith("mqadmin") and "CODE: " in text for text in (threads, direct)] == [True, True]
        assert seen.empty()
        return
    assert "worker-1 RUNNABLE" in threads
    assert "CR_LATER" in direct
    kinds = [seen.get(timeout=5).WhichOneof("command") for _ in range(2)]
    assert kinds == ["print_thread_stack_trace_command", "verify_message_command"]
    assert entry.message_id == stored.properties["UNIQ_KEY"]
