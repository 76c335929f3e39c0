"""Telemetry: the settings of clients, and the requests of brokers to clients (39, 307, 309)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from twisted.internet import defer
from twisted.python import failure

from twisted_mq.logs import Logger
from twisted_mq.protocol.codes import RequestCode
from twisted_mq.protocol.errors import RecordError
from twisted_mq.protocol.headers import CheckTransactionStateRequestHeader
from twisted_mq.protocol.layouts.record_codec import decode_message
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.protocol.wire.header_codec import decode_header
from twisted_mq.proxy.checks import check_count, checked_group, checked_topic
from twisted_mq.proxy.client import CONSUMERS, PRODUCER, GrpcClient
from twisted_mq.proxy.clients import Clients
from twisted_mq.proxy.conversion import hand_out
from twisted_mq.proxy.grpc.calls import Call
from twisted_mq.proxy.grpc.status import GrpcStatus
from twisted_mq.proxy.messages import Message, RecoverOrphanedTransactionCommand, TelemetryCommand
from twisted_mq.proxy.parts import Parts
from twisted_mq.proxy.presence import Presence
from twisted_mq.proxy.relays import Relays
from twisted_mq.proxy.sending import Transactions
from twisted_mq.proxy.settings import answered_settings
from twisted_mq.proxy.statuses import ProxyError, ok, status_of

Authenticate = Callable[[Call], Awaitable[str | None]]


ANSWERS = frozenset({"thread_stack_trace", "verify_message_result", "verify_message_command"})
"""The commands that answer requests of brokers. Node's client sends verify_message_command back if it refuses."""


class TelemetryStreams:
    """The streams of all clients. Each client has one open stream; a new stream replaces the old one."""

    log = Logger()

    def __init__(
        self,
        parts: Parts,
        clients: Clients,
        presence: Presence,
        transactions: Transactions,
        authenticate: Authenticate,
    ) -> None:
        self._parts = parts
        self._clients = clients
        self._presence = presence
        self._transactions = transactions
        self._authenticate = authenticate
        self.relays = Relays(parts)
        clients.commands = self.command
        clients.requests = self.relays.ask

    # the stream

    def open(self, call: Call) -> None:
        """Open a stream. Its first command identifies the client."""
        call.received = lambda command: self._received(call, command)
        call.half_closed = call.finish

    def _received(self, call: Call, command: Any) -> None:
        kind = command.WhichOneof("command")
        if kind == "settings":
            answered = defer.ensureDeferred(self._settings(call, command.settings))
            answered.addErrback(self._refused, call)
        elif kind in ANSWERS:
            client = self._clients.on_stream(call)
            if client is not None:
                self.relays.answer(client, getattr(command, kind).nonce, command)

    async def _settings(self, call: Call, settings: Any) -> None:
        pub_sub = settings.WhichOneof("pub_sub")
        if pub_sub is None:
            call.finish(GrpcStatus.INVALID_ARGUMENT, "settings must have publishing or subscription")
            return
        check_count("topics", len(settings.publishing.topics))
        check_count("subscriptions", len(settings.subscription.subscriptions))
        access_key = await self._authenticate(call)
        group = None
        if pub_sub == "publishing":
            for topic in settings.publishing.topics:
                checked_topic(topic)
        else:
            name = checked_group(settings.subscription.group)
            topics = [checked_topic(entry.topic) for entry in settings.subscription.subscriptions]
            group = await self._brokers_group(name, topics)
        client = self._clients.settle(call, settings, access_key)
        self._presence.seen(client)
        self._presence.opened(client, call)
        await self._parts.brokers.register(client)
        answer = answered_settings(settings, self._parts.options, self._parts.max_body_bytes, group)
        call.send(TelemetryCommand(status=ok(), settings=answer))

    async def _brokers_group(self, name: str, topics: list[str]) -> Any:
        """Return the group's configuration; None if no broker is known to have it."""
        return await self._parts.brokers.group(name, topics[0] if topics else "")

    def _refused(self, reason: failure.Failure, call: Call) -> None:
        error = reason.value
        if isinstance(error, ProxyError):
            self._refuse(call, error)
            return
        found = status_of(error) if isinstance(error, Exception) else None
        if found is None:
            self.log.failure("settings failed: peer={p}", reason, p=call.peer)
            call.finish(GrpcStatus.INTERNAL, f"{type(error).__name__}: {error}")
        else:
            call.finish(GrpcStatus.INTERNAL, found.message)

    def _refuse(self, call: Call, error: ProxyError) -> None:
        """Refuse settings as Apache's proxy does: an unknown client gets a command, other errors end the stream."""
        if error.code in ("CLIENT_ID_REQUIRED", "UNAUTHORIZED"):
            call.send(TelemetryCommand(status=status_of(error)))
            call.finish()
        else:
            call.finish(GrpcStatus.INVALID_ARGUMENT, error.message)

    # requests of brokers

    def command(self, client: GrpcClient, command: RemotingCommand) -> None:
        """Handle a broker's one-way command to a client. Only transaction checks are for gRPC clients."""
        if command.code == RequestCode.CHECK_TRANSACTION_STATE:
            self._check_transaction(client, command)

    def check_transaction(self, command: RemotingCommand) -> bool:
        """Pass a transaction check to any producer of its topic. Return False if none is connected."""
        try:
            message = decode_message(command.body)
        except RecordError as error:
            self.log.warn("transaction check cannot be read: {e}", e=error)
            return False
        producers = self._clients.producers_of(message.topic)
        if not producers:
            return False
        self._check_transaction(producers[message.physical_offset % len(producers)], command)
        return True

    def _check_transaction(self, client: GrpcClient, command: RemotingCommand) -> None:
        header = decode_header(CheckTransactionStateRequestHeader, command)
        message = decode_message(command.body)
        made = hand_out(Message(), message, message.topic)
        transaction_id = header.transaction_id or made.system_properties.message_id
        self._transactions.remember(
            client.client_id,
            message.topic,
            transaction_id,
            header.bname or "",
            header.tran_state_table_offset,
            header.commit_log_offset,
        )
        client.tell(
            TelemetryCommand(
                status=ok(),
                recover_orphaned_transaction_command=RecoverOrphanedTransactionCommand(
                    message=made, transaction_id=transaction_id
                ),
            )
        )


def is_known_type(client_type: int) -> bool:
    """Return whether clients of this type are served."""
    return client_type == PRODUCER or client_type in CONSUMERS
