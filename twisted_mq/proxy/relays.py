"""Requests of brokers that gRPC clients answer on their Telemetry streams: 307 (running info) and 309 (verify a message).

A request goes to the client with a nonce, and its answer names that nonce. What the proxy knows itself it answers at once: a
running info without thread stacks.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from typing import Any

import attrs
from twisted.internet import defer, interfaces

from twisted_mq.protocol.bodies import ConsumeMessageDirectlyResult, ConsumerRunningInfo, encode_body
from twisted_mq.protocol.codes import RequestCode, ResponseCode
from twisted_mq.protocol.errors import RecordError
from twisted_mq.protocol.headers import GetConsumerRunningInfoRequestHeader
from twisted_mq.protocol.layouts.record_codec import decode_message
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.protocol.wire.header_codec import decode_header
from twisted_mq.proxy.client import GrpcClient
from twisted_mq.proxy.conversion import hand_out
from twisted_mq.proxy.messages import (
    Code,
    Message,
    PrintThreadStackTraceCommand,
    TelemetryCommand,
    VerifyMessageCommand,
)
from twisted_mq.proxy.parts import Parts
from twisted_mq.proxy.registrations import consumer_data
from twisted_mq.proxy.statuses import ok
from twisted_mq.remoting.channel import Request
from twisted_mq.remoting.errors import RemotingSendError, RemotingTooMuchRequestError

MOST_OPEN = 1000
"""The limit of requests that wait for an answer of a client, of all clients together."""
MOST_TRACE_CHARACTERS = 1 << 20
"""The limit of a thread stack. The rest is cut off."""
FROM_CLIENT = "from gRPC client"
OK = Code.Value("OK")
UNSPECIFIED = Code.Value("CODE_UNSPECIFIED")
RESULTS: Mapping[int, str] = {
    OK: "CR_SUCCESS",
    Code.Value("FAILED_TO_CONSUME_MESSAGE"): "CR_LATER",
    Code.Value("MESSAGE_CORRUPTED"): "CR_RETURN_NULL",
}
"""A client's status of a verified message -> the result for brokers. Other statuses are refusals."""
REFUSALS: Mapping[int, ResponseCode] = {Code.Value("VERIFY_FIFO_MESSAGE_UNSUPPORTED"): ResponseCode.NO_PERMISSION}
"""A client's status of a request that it refuses -> the response code for brokers. Others are SYSTEM_ERROR."""


@attrs.frozen(eq=False)
class Open:
    """A request that a client has not answered. `answered` makes the broker's answer of the client's."""

    client: GrpcClient
    request: RemotingCommand
    since: float
    waiting: defer.Deferred[RemotingCommand]
    timer: interfaces.IDelayedCall
    answered: Callable[[Open, Any], RemotingCommand]


class Relays:
    """Passes requests of brokers to clients, and the clients' answers back."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._clock = parts.clock
        self._nonces = itertools.count()
        self._open: dict[str, Open] = {}

    def __len__(self) -> int:
        return len(self._open)

    def ask(self, client: GrpcClient, request: Request, seconds: float) -> defer.Deferred[RemotingCommand]:
        """Return a client's answer to a request. Fails with RemotingError, BrokerError.

        A client that does not answer in time has the answer SYSTEM_BUSY, as at Apache's proxy.
        """
        if isinstance(request, RemotingCommand):
            if request.code == RequestCode.GET_CONSUMER_RUNNING_INFO:
                return self._running_info(client, request, seconds)
            if request.code == RequestCode.CONSUME_MESSAGE_DIRECTLY:
                return self._verify(client, request, seconds)
        return defer.fail(RemotingSendError(f"client {client.client_id} is a gRPC client, which takes no such request"))

    def answer(self, client: GrpcClient, nonce: str, command: Any) -> None:
        """Handle a client's answer. One that comes too late, or to a request of another client, is dropped."""
        found = self._open.get(nonce)
        if found is None or found.client is not client:
            return
        self._close(nonce)
        found.waiting.callback(found.answered(found, command))

    def forget(self, client: GrpcClient) -> None:
        """End the requests of a client that is gone."""
        for nonce, one in list(self._open.items()):
            if one.client is client:
                self._close(nonce)
                one.waiting.errback(RemotingSendError(f"client {client.client_id} has disconnected"))

    def _running_info(
        self, client: GrpcClient, request: RemotingCommand, seconds: float
    ) -> defer.Deferred[RemotingCommand]:
        if not decode_header(GetConsumerRunningInfoRequestHeader, request).jstack_enable:
            return defer.succeed(request.answer(remark=FROM_CLIENT, body=encode_body(running_info(client))))
        return self._send(
            client,
            request,
            seconds,
            lambda nonce: TelemetryCommand(
                status=ok(), print_thread_stack_trace_command=PrintThreadStackTraceCommand(nonce=nonce)
            ),
            _with_threads,
        )

    def _verify(self, client: GrpcClient, request: RemotingCommand, seconds: float) -> defer.Deferred[RemotingCommand]:
        try:
            message = decode_message(request.body)
        except RecordError as error:
            return defer.fail(RemotingSendError(f"message for client {client.client_id} cannot be read: {error}"))
        made = hand_out(Message(), message, message.topic)
        return self._send(
            client,
            request,
            seconds,
            lambda nonce: TelemetryCommand(
                status=ok(), verify_message_command=VerifyMessageCommand(nonce=nonce, message=made)
            ),
            self._verified,
        )

    def _send(
        self,
        client: GrpcClient,
        request: RemotingCommand,
        seconds: float,
        command: Callable[[str], Any],
        answered: Callable[[Open, Any], RemotingCommand],
    ) -> defer.Deferred[RemotingCommand]:
        if len(self._open) >= MOST_OPEN:
            return defer.fail(RemotingTooMuchRequestError(f"{MOST_OPEN} requests wait for answers of gRPC clients"))
        nonce = str(next(self._nonces))
        if not client.tell(command(nonce)):
            return defer.fail(RemotingSendError(f"client {client.client_id} has no Telemetry stream"))
        limit = min(seconds, self._parts.options.grpc_proxy_relay_request_timeout_in_seconds)
        timer = self._clock.callLater(limit, self._late, nonce)
        waiting: defer.Deferred[RemotingCommand] = defer.Deferred(lambda _: self._close(nonce))
        self._open[nonce] = Open(client, request, self._clock.seconds(), waiting, timer, answered)
        return waiting

    def _late(self, nonce: str) -> None:
        one = self._open.pop(nonce)
        one.waiting.callback(one.request.answer(ResponseCode.SYSTEM_BUSY, "call remote timeout"))

    def _close(self, nonce: str) -> None:
        one = self._open.pop(nonce)
        if one.timer.active():
            one.timer.cancel()

    def _verified(self, one: Open, command: Any) -> RemotingCommand:
        found = RESULTS.get(command.status.code)
        if found is None:
            return _refused(one, command.status)
        spent_ms = int((self._clock.seconds() - one.since) * 1000)
        result = ConsumeMessageDirectlyResult(consume_result=found, remark=FROM_CLIENT, spent_time_mills=spent_ms)
        return one.request.answer(remark=FROM_CLIENT, body=encode_body(result))


def running_info(client: GrpcClient, threads: str | None = None) -> ConsumerRunningInfo:
    """Return what is known of a consumer, with its thread stacks."""
    data = consumer_data(client)
    return ConsumerRunningInfo(
        properties={
            "PROP_CONSUME_TYPE": data.consume_type or "",
            "PROP_CLIENT_VERSION": client.settings.user_agent.version,
            "PROP_CONSUMER_START_TIMESTAMP": str(int(client.since * 1000)),
        },
        subscription_set=list(data.subscription_data_set),
        jstack=threads,
    )


def _with_threads(one: Open, command: Any) -> RemotingCommand:
    """Answer with a client's thread stacks. Some clients send no status with them."""
    status, trace = command.status, command.thread_stack_trace
    if status.code == OK or (status.code == UNSPECIFIED and trace.HasField("thread_stack_trace")):
        text = trace.thread_stack_trace
        if len(text) > MOST_TRACE_CHARACTERS:
            text = f"{text[:MOST_TRACE_CHARACTERS]}\n({len(text) - MOST_TRACE_CHARACTERS} more characters)"
        return one.request.answer(remark=FROM_CLIENT, body=encode_body(running_info(one.client, text)))
    return _refused(one, status)


def _refused(one: Open, status: Any) -> RemotingCommand:
    """Answer with a client's refusal. It may have a code that is not known here."""
    name = Code.Name(status.code) if status.code in Code.values() else str(status.code)
    remark = f"client {one.client.client_id} answered {name}: {status.message}"
    return one.request.answer(REFUSALS.get(status.code, ResponseCode.SYSTEM_ERROR), remark)
