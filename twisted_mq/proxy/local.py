"""The brokers of local mode: only the broker of this process, whose processors are called without a socket.

Nothing here imports the broker. The broker passes in its table of processors and its lookups.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

import attrs
from twisted.internet import defer, interfaces
from twisted.python import failure

from twisted_mq.access.resources import Resource
from twisted_mq.protocol.bodies import (
    HeartbeatData,
    ProducerData,
    SubscriptionGroupConfig,
    TopicRouteData,
    encode_body,
)
from twisted_mq.protocol.codes import RequestCode, ResponseCode
from twisted_mq.protocol.errors import BrokerError
from twisted_mq.protocol.headers import UnregisterClientRequestHeader
from twisted_mq.protocol.names.pop_receipt import Receipt
from twisted_mq.protocol.requests.rights import Action
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.protocol.wire.framing import decode_frame
from twisted_mq.protocol.wire.signature import Credentials, sign
from twisted_mq.proxy.brokers import CALL_SECONDS, OwnBroker, PlainColumns, PlainPop
from twisted_mq.proxy.client import GrpcClient
from twisted_mq.proxy.queues import writable
from twisted_mq.proxy.registrations import consumer_data, groups_of
from twisted_mq.proxy.requests import make_request, succeeded
from twisted_mq.proxy.rights import WantedRights, of_client
from twisted_mq.proxy.statuses import ProxyError
from twisted_mq.remoting.channel import Processor, Ready

MOST_TOPICS = 10_000
"""The limit of topics whose queues are kept."""


@attrs.frozen(eq=False, kw_only=True)
class LocalBroker:
    """The parts of this process's broker that the proxy uses."""

    broker_name: str
    processors: Mapping[int, Processor]
    dispatch: Callable[[], object]
    """Makes appended messages visible."""
    route: Callable[[str], defer.Deferred[TopicRouteData]]
    """Returns the route of a topic. Fails with TopicNotFound."""
    message_type: Callable[[str], str]
    group: Callable[[str], SubscriptionGroupConfig | None]
    grpc_address: Callable[[str, str], tuple[str, int]]
    """Returns the host and port at which a broker of this name and address serves gRPC clients."""
    secret_of: Callable[[str], str | None] | None = None
    """Returns a user's secret. It is None itself if users are not authenticated."""
    present_route: Callable[[str], TopicRouteData | None] = lambda topic: None
    """Returns the route that `route` would fire with at once; None if it would wait or fail."""
    put_plain: Callable[..., Sequence[int]] = lambda *_: ()
    """Stores plain messages of a client, whose columns follow: see `OwnBroker.put_plain`."""
    may_ack: Callable[[str, int, int, int], bool] = lambda *_: False
    """Returns whether `ack_plain` takes the message with this topic, queue, queue offset and queue of the revive log."""
    ack_plain: Callable[..., Mapping[int, str]] = lambda *_: {}
    """Acknowledges messages of one pop: the fields of a PlainPop follow, and the queue offsets."""
    check_resource: Callable[[GrpcClient, str | None, int, tuple[Action, ...], Resource], None] | None = None
    """Raises BrokerError if a user may do none of the actions. It is None itself if users are not checked."""


class LocalBrokers:
    """The broker of this process."""

    def __init__(self, broker: LocalBroker, clock: interfaces.IReactorTime) -> None:
        self._broker = broker
        self._clock = clock
        self._dispatching: interfaces.IDelayedCall | None = None
        self._queues: dict[str, tuple[TopicRouteData, Sequence[int]]] = {}
        self.own: OwnBroker | None = self

    def stop(self) -> None:
        """Stop dispatching. The broker's own stop makes visible what was appended last."""
        if self._dispatching is not None:
            self._dispatching.cancel()
            self._dispatching = None

    def route(self, topic: str) -> defer.Deferred[TopicRouteData]:
        return self._broker.route(topic)

    def serves(self, broker_name: str) -> bool:
        return broker_name == self._broker.broker_name

    def endpoint_of(self, broker_name: str, address: str) -> tuple[str, int] | None:
        return self._broker.grpc_address(broker_name, address)

    def message_type(self, topic: str) -> defer.Deferred[str]:
        return defer.succeed(self._broker.message_type(topic))

    def group(self, group: str, topic: str) -> defer.Deferred[SubscriptionGroupConfig | None]:
        return defer.succeed(self._broker.group(group))

    def ask(
        self,
        client: GrpcClient,
        broker_name: str,
        command: RemotingCommand,
        seconds: float = CALL_SECONDS,
        unwanted: Callable[[RemotingCommand], None] | None = None,
    ) -> defer.Deferred[RemotingCommand]:
        """See `Brokers.ask`. Requests for another broker are refused. Cancelling a call cancels the pop that it holds."""
        if not self.serves(broker_name):
            remark = f"broker {broker_name} is not served here; this is broker {self._broker.broker_name}"
            return defer.fail(BrokerError(ResponseCode.SYSTEM_ERROR, remark))
        processor = self._broker.processors.get(command.code)
        if processor is None:
            remark = f" request type {command.code} not supported"
            return defer.fail(BrokerError(ResponseCode.REQUEST_CODE_NOT_SUPPORTED, remark))
        command.language = client.language
        secret_of = self._broker.secret_of
        if secret_of is not None and client.access_key is not None:
            sign(command, Credentials(client.access_key, secret_of(client.access_key) or ""))
        answer: defer.Deferred[Any] = defer.maybeDeferred(processor, client, command)
        if secret_of is not None:
            answer.addErrback(_unauthorized)
        self._dispatch_soon()
        return answer.addCallback(_as_command)

    def _dispatch_soon(self) -> None:
        """Dispatch at the end of the present read, or else in the next turn."""
        if self._dispatching is None:
            self._dispatching = self._clock.callLater(0, self._dispatch)

    def _dispatch(self) -> None:
        self._dispatching = None
        self._broker.dispatch()

    # OwnBroker

    def dispatch(self) -> None:
        if self._dispatching is not None:
            self._dispatching.cancel()
            self._dispatch()

    def queue_ids_now(self, topic: str) -> Sequence[int]:
        route = self._broker.present_route(topic)
        if route is None:
            return ()
        known = self._queues.get(topic)
        if known is None or known[0] is not route:
            if len(self._queues) >= MOST_TOPICS:
                self._queues.clear()
            own = [queue_id for name, queue_id in writable(route) if self.serves(name)]
            known = self._queues[topic] = route, own
        return known[1]

    def type_now(self, topic: str) -> str:
        return self._broker.message_type(topic)

    def put_plain(self, client: GrpcClient, columns: PlainColumns) -> Sequence[int]:
        offsets = self._broker.put_plain(client, *columns)
        if offsets:
            self._dispatch_soon()
        return offsets

    def may_ack(self, topic: str, receipt: Receipt) -> bool:
        return (
            self.serves(receipt.broker_name)
            and not receipt.is_order
            and self._broker.may_ack(topic, receipt.queue_id, receipt.queue_offset, receipt.revive_queue_id)
        )

    def ack_plain(self, pop: PlainPop, queue_offsets: Sequence[int]) -> Mapping[int, str]:
        refused = self._broker.ack_plain(*pop, queue_offsets)
        self._dispatch_soon()
        return refused

    def permit(self, client: GrpcClient, wanted: Sequence[WantedRights]) -> defer.Deferred[None]:
        return defer.execute(self._permit, client, wanted)

    def _permit(self, client: GrpcClient, wanted: Sequence[WantedRights]) -> None:
        check = self._broker.check_resource
        if check is None:
            return
        try:
            for resource, actions in wanted:
                check(client, client.access_key, RequestCode.GET_ROUTEINFO_BY_TOPIC, actions, resource)
        except BrokerError as error:
            raise ProxyError("UNAUTHORIZED", error.remark) from None

    def register(self, client: GrpcClient) -> defer.Deferred[None]:
        return self.permit(client, of_client(client)).addCallback(lambda _: self._register(client))

    def _register(self, client: GrpcClient) -> defer.Deferred[None]:
        producers, consumers = groups_of(client)
        data = HeartbeatData(
            client_id=client.client_id,
            producer_data_set=[ProducerData(group_name=name) for name in sorted(producers)],
            consumer_data_set=[consumer_data(client)] if consumers else [],
        )
        client.groups = producers, consumers
        command = RemotingCommand.request(RequestCode.HEART_BEAT, None, encode_body(data))
        return self.ask(client, self._broker.broker_name, command).addCallback(succeeded)

    def unregister(self, client: GrpcClient) -> None:
        producers, consumers = client.groups
        client.groups = frozenset(), frozenset()
        for header in (
            *(UnregisterClientRequestHeader(client_id=client.client_id, producer_group=one) for one in producers),
            *(UnregisterClientRequestHeader(client_id=client.client_id, consumer_group=one) for one in consumers),
        ):
            command = make_request(RequestCode.UNREGISTER_CLIENT, header)
            self.ask(client, self._broker.broker_name, command).addErrback(lambda _: None)


def _unauthorized(reason: failure.Failure) -> NoReturn:
    """Turn a refusal of access control into UNAUTHORIZED, whatever its response code is."""
    error = reason.value
    if isinstance(error, BrokerError) and (
        error.response_code == ResponseCode.NO_PERMISSION or "AclException" in error.remark
    ):
        raise ProxyError("UNAUTHORIZED", error.remark)
    reason.raiseException()


def _as_command(answer: Ready) -> RemotingCommand:
    if isinstance(answer, RemotingCommand):
        return answer
    if answer is None:
        raise defer.CancelledError
    return decode_frame(bytes(answer))
