"""apache.rocketmq.v2.MessagingService: the table of its methods, and the steps that are common to all calls.

Whether a call succeeds or fails, its client gets an answer with a status, and the gRPC status is OK. Methods that are not in
the table are UNIMPLEMENTED.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from twisted.internet import defer

from twisted_mq.logs import Logger
from twisted_mq.proxy import messages
from twisted_mq.proxy.authentication import Authentication
from twisted_mq.proxy.checks import checked_group, checked_topic
from twisted_mq.proxy.client import GrpcClient
from twisted_mq.proxy.clients import Clients, NoSettings, client_id_of
from twisted_mq.proxy.grpc.calls import Call, Method, Methods, Together
from twisted_mq.proxy.messages import Code, HeartbeatResponse, NotifyClientTerminationResponse, message_class
from twisted_mq.proxy.parts import Parts
from twisted_mq.proxy.plain_acks import PlainAcks
from twisted_mq.proxy.plain_sends import PlainSends
from twisted_mq.proxy.presence import Presence
from twisted_mq.proxy.pulling import Pulling
from twisted_mq.proxy.receiving import Receiving
from twisted_mq.proxy.routing import Routing
from twisted_mq.proxy.sending import Sending
from twisted_mq.proxy.settings import implied_settings
from twisted_mq.proxy.statuses import FAILED, ProxyError, TakenTogether, ok, status, status_of
from twisted_mq.proxy.telemetry import TelemetryStreams, is_known_type

Handle = Callable[[GrpcClient, Any], Awaitable[Any]]
StreamHandle = Callable[[GrpcClient, Call, Any], Awaitable[Any]]
"""Sends its answers, and returns their status."""
Find = Callable[[Call, Any, str | None], Awaitable[GrpcClient]]
"""Returns the client of a call with this request, signed by this user."""
Take = Callable[[GrpcClient, Sequence[bytes]], TakenTogether]
"""Handles the first of a client's encoded requests, up to one that is not plain."""

OK, ERROR = int(Code.Value("OK")), int(Code.Value(FAILED))


class MessagingService:
    """Handles all calls of one proxy."""

    log = Logger()

    def __init__(self, parts: Parts, authentication: Authentication) -> None:
        self._parts = parts
        self._authentication = authentication
        self.counts: Counter[tuple[str, int]] = Counter()
        """The number of answers, by method and status code."""
        self.clients = Clients(parts.clock, self._lost)
        self.sending = Sending(parts)
        self.receiving = Receiving(parts)
        self.pulling = Pulling(parts)
        self.routing = Routing(parts)
        self.presence = Presence(parts, self.clients, self.clients.drop)
        own = parts.brokers.own if authentication.secret_of is None else None
        self._together: dict[str, Together] = {}
        """Handles calls of one read together, by method. Empty if brokers are asked over the network, or if users are
        authenticated."""
        if own is not None:
            self._together["SendMessage"] = self._taken("SendMessage", PlainSends(parts, own, self.sending.turn).take)
            self._together["AckMessage"] = self._taken("AckMessage", PlainAcks(parts, own, self.receiving.renewal).take)
        self.telemetry = TelemetryStreams(
            parts, self.clients, self.presence, self.sending.transactions, authentication.check
        )

    def start(self) -> None:
        """Begin periodic work."""
        self.receiving.renewal.start()
        self.presence.start()

    def stop(self) -> None:
        """End periodic work and drop all clients. The messages that they were consuming become visible again."""
        self.receiving.renewal.stop()
        self.presence.stop()
        for client in self.clients:
            self.clients.drop(client)

    def methods(self) -> Methods:
        """Return the methods by path."""
        unary: dict[str, Handle] = {
            "QueryRoute": self.routing.query_route,
            "QueryAssignment": self.routing.query_assignment,
            "Heartbeat": self.heartbeat,
            "NotifyClientTermination": self.terminated,
            "EndTransaction": self.sending.end_transaction,
            "RecallMessage": self.sending.recall,
            "SendMessage": self.sending.send,
            "AckMessage": self.receiving.ack,
            "UpdateOffset": self.pulling.update_offset,
            "GetOffset": self.pulling.get_offset,
            "QueryOffset": self.pulling.query_offset,
            "ChangeInvisibleDuration": self.receiving.change_invisible,
            "ForwardMessageToDeadLetterQueue": self.receiving.forward,
        }
        table = {_path(name): self._unary(name, handle) for name, handle in unary.items()}
        table[_path("ReceiveMessage")] = self._stream("ReceiveMessage", self._receiver, self.receiving.receive)
        table[_path("PullMessage")] = self._stream("PullMessage", self._puller, self.pulling.pull)
        table[_path("Telemetry")] = Method(
            message_class("TelemetryCommand"), self.telemetry.open, takes_stream=True, gives_stream=True
        )
        return table

    def _unary(self, name: str, handle: Handle) -> Method:
        async def handled(call: Call, asked: Any) -> Any:
            return await handle(await self._client(call), asked)

        def answered(call: Call, asked: Any) -> Any:
            return self._counted(name, call, handled(call, asked))

        request = messages.METHODS[name][0]
        return Method(message_class(request), answered, together=self._together.get(name))

    def _taken(self, name: str, take: Take) -> Together:
        """Return what handles plain calls of one client together, and counts their answers."""

        def taken(call: Call, requests: Sequence[bytes]) -> Sequence[bytes]:
            client = self._known(call)
            answers, failed = TakenTogether() if client is None else take(client, requests)
            if answers:
                self.counts[name, OK] += len(answers) - failed
            if failed:
                self.counts[name, ERROR] += failed
            return answers

        return taken

    def _known(self, call: Call) -> GrpcClient | None:
        """Return the client of a call; None if the call has to be refused."""
        try:
            return self.clients.stranger(call, None)
        except ProxyError:
            return None

    async def _counted(self, name: str, call: Call, handled: Awaitable[Any]) -> Any:
        """Return the answer to a call, that of a refusal if its handler fails, and count it."""
        try:
            answer = await handled
        except Exception as error:
            answer = message_class(messages.METHODS[name][1])(status=self._status(name, call, error))
        self.counts[name, answer.status.code] += 1
        return answer

    async def _client(self, call: Call) -> GrpcClient:
        """Return the authenticated client of a call. Raises ProxyError."""
        if self._authentication.secret_of is None:
            return self.clients.stranger(call, None)
        client_id_of(call)
        return self.clients.stranger(call, await self._authentication.check(call))

    def _status(self, name: str, call: Call, error: Exception) -> Any:
        if isinstance(error, defer.CancelledError):
            raise error
        found = status_of(error)
        if found is None:
            self.log.failure("{name} failed: peer={peer}", name=name, peer=call.peer)
            found = status("INTERNAL_SERVER_ERROR", f"{type(error).__name__}: {error}")
        return found

    def _stream(self, name: str, find: Find, handle: StreamHandle) -> Method:
        request, answer, _, _ = messages.METHODS[name]
        answer_class = message_class(answer)

        async def streamed(call: Call, asked: Any) -> None:
            try:
                client_id_of(call)
                user = await self._authentication.check(call)
                client = await find(call, asked, user)
                found = await handle(client, call, asked)
            except Exception as error:
                found = self._status(name, call, error)
                await call.send(answer_class(status=found))
            self.counts[name, found.code] += 1

        return Method(message_class(request), streamed, gives_stream=True)

    async def _puller(self, call: Call, request: Any, user: str | None) -> GrpcClient:
        """Return the client of a pull, which needs no settings."""
        return self.clients.stranger(call, user)

    async def _receiver(self, call: Call, request: Any, user: str | None) -> GrpcClient:
        """Return the client of a receive, once its settings are known; those that the receive implies if none come.

        Python's client 5.1.2 sends its settings up to 10 minutes late after its Telemetry stream was cut.
        """
        try:
            return await self.clients.settled(call, user)
        except NoSettings:
            checked_topic(request.message_queue.topic)
            checked_group(request.group)
            client = self.clients.settle(call, implied_settings(request), user)
            self.presence.seen(client)
            await self._parts.brokers.register(client)
            return client

    async def heartbeat(self, client: GrpcClient, request: Any) -> Any:
        """Handle the heartbeat of a client."""
        if client.settings is None or not is_known_type(client.settings.client_type):
            raise ProxyError(
                "UNRECOGNIZED_CLIENT_TYPE", f"client {client.client_id} has not sent its settings with Telemetry"
            )
        if client.group:
            checked_group(client.settings.subscription.group)
        self.presence.seen(client)
        await self._parts.brokers.register(client)
        return HeartbeatResponse(status=ok())

    async def terminated(self, client: GrpcClient, request: Any) -> Any:
        """Handle NotifyClientTermination: drop the client."""
        if client.settings is None:
            raise ProxyError(
                "UNRECOGNIZED_CLIENT_TYPE", f"client {client.client_id} has not sent its settings with Telemetry"
            )
        self.clients.drop(client)
        return NotifyClientTerminationResponse(status=ok())

    def _lost(self, client: GrpcClient) -> None:
        """Release the resources of a client that has disconnected, or whose heartbeats stopped."""
        self.presence.forget(client)
        self.telemetry.relays.forget(client)
        self.receiving.renewal.forget(client)
        self._parts.brokers.unregister(client)
        if client.telemetry is not None:
            client.telemetry.finish()


_path = messages.MESSAGING.method_path
