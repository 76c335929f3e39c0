"""Sends a message to a queue's broker, and to another broker if that fails (Apache: DefaultMQProducerImpl)."""

from __future__ import annotations

from collections.abc import Coroutine, Sequence

import attrs
from twisted.internet import defer, task

from twisted_mq.client.core.client_metrics import ProducerMetrics
from twisted_mq.client.core.errors import (
    BrokerGone,
    NoRoute,
    SendFailed,
    SendRefused,
    TopicCreationRefused,
    TopicNotFound,
    TopicNotWritable,
)
from twisted_mq.client.core.mq_client import MQClient
from twisted_mq.client.producing.latency_fault import LatencyFault
from twisted_mq.client.producing.outgoing import Outgoing, SendRequests
from twisted_mq.client.producing.producer_options import ProducerOptions
from twisted_mq.client.producing.retries import Again, Retries, again
from twisted_mq.client.producing.send_result import SendResult, SendStatus, send_result
from twisted_mq.protocol.bodies import MessageQueue, TopicRouteData
from twisted_mq.protocol.codes import ResponseCode
from twisted_mq.protocol.errors import BrokerError
from twisted_mq.protocol.flags import PermName
from twisted_mq.protocol.names.static_topics import is_logical
from twisted_mq.protocol.names.topic_route import TopicPublishInfo, publish_info
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.remoting.calling_channel import CallingChannel
from twisted_mq.remoting.errors import RemotingError


@attrs.define(eq=False)
class FirstAttempt:
    """An attempt that began without waiting for anything; `given` is the queue if the caller has chosen one."""

    queue: MessageQueue
    answer: defer.Deferred[RemotingCommand]
    deadline: float
    total: float
    given: MessageQueue | None


class Sender:
    """The sends of one group: its topics' queues, and the latencies of their brokers. Does not need to join the client."""

    def __init__(self, client: MQClient, group: str, options: ProducerOptions) -> None:
        self._client = client
        self._group = group
        self._options = options
        self._clock = client.reactor
        self.infos: dict[str, TopicPublishInfo] = {}
        """Queues of the topics sent to so far."""
        self.metrics = ProducerMetrics()
        self._latency = LatencyFault(enabled=options.send_latency_fault)
        self.warm: set[str] = set()
        """Topics whose route and connections are ready for a send, as far as can be known."""
        self.channels: dict[str, CallingChannel] = {}
        """Connections by broker name; one that was lost is still here. Empty after each change of a route."""
        self.requests = SendRequests(
            group, options.default_topic_queue_nums, completed=client.remoting.completes_requests
        )

    def topics(self) -> list[str]:
        """Return the topics sent to so far."""
        return list(self.infos)

    def route_changed(self, topic: str, route: TopicRouteData) -> None:
        """Use this route for sends from now on."""
        self.channels.clear()
        self.warm.discard(topic)
        known = self.infos.get(topic)
        if known is not None:
            self.infos[topic] = publish_info(topic, route, known.turn)

    async def info(self, topic: str) -> TopicPublishInfo:
        """Return the queues that a topic can be sent to. Raises NoRoute."""
        info = self.infos.get(topic)
        if info is None or not info.queues:
            route = await self._client.routes.find_or_default(topic, self._options.default_topic_queue_nums)
            info = self.infos.setdefault(topic, publish_info(topic, route, self._client.rng.randrange(1 << 16)))
        if not info.queues:  # the route may have changed since it was received
            info = self.infos[topic] = publish_info(topic, await self._client.routes.update(topic), info.turn)
        if not info.queues:
            raise self._no_queue(topic)
        return info

    def _no_queue(self, topic: str) -> NoRoute:
        """Return why no message can be sent to a topic that has a route."""
        route = self._client.routes.get(topic)
        writable = [] if route is None else [one for one in route.queue_datas if one.perm & PermName.PERM_WRITE]
        if writable:
            return BrokerGone(writable[0].broker_name, self._servers())
        return TopicNotWritable(topic, self._servers())

    def connected(self, broker_name: str) -> CallingChannel | None:
        """Return the open connection to a broker's master, if there is one; None for the broker name of logical queues."""
        if is_logical(broker_name):
            return None
        address = self._client.routes.master_now(broker_name)
        channel = None if address is None else self._client.remoting.channel_now(address)
        if channel is not None:
            self.channels[broker_name] = channel
        return channel

    def deliver(
        self,
        message: Outgoing,
        queue: MessageQueue | None,
        timeout_seconds: float | None,
        begun: FirstAttempt | None = None,
    ) -> Coroutine[defer.Deferred[object], object, SendResult]:
        """Send to the given queue, or to the topic's queues in turn with retries; fails as Producer.send does.

        With an attempt that was `begun`, continue it: then the arguments except the message are those it began with.
        """
        if begun is not None:
            queue, deadline, total = begun.given, begun.deadline, begun.total
        else:
            total = self._options.send_timeout_seconds if timeout_seconds is None else timeout_seconds
            deadline = self._clock.seconds() + total
        return self._deliver(
            message, queue, Retries(deadline, self._options.retry_times, self._client.rng), total, begun
        )

    async def deliver_one_way(self, message: Outgoing, queue: MessageQueue | None) -> None:
        """Hand the message to a connection; no answer will come."""
        chosen = await self._located(queue or self._choose(await self.info(message.topic), None))
        request = self.requests.command(message, chosen, self._client.wall_ms())
        await self._client.remoting.invoke_one_way(await self._address(chosen), request)

    async def _deliver(
        self, message: Outgoing, given: MessageQueue | None, retries: Retries, total: float, begun: FirstAttempt | None
    ) -> SendResult:
        """Try the given queue, or the topic's brokers in turn, until a broker accepts the message or no try is left."""
        attempt = self._attempt_and_note if self._latency.enabled else self._attempt
        stored: SendResult | None = None
        while True:
            queue = given
            try:
                if begun is not None:
                    queue, answer, begun = begun.queue, begun.answer, None
                    result = await self._result(message, queue, answer)
                else:
                    queue = queue or self._choose(await self.info(message.topic), retries.last)
                    result = await attempt(message, queue, retries.deadline)
            except (BrokerError, RemotingError, NoRoute) as failed:
                error: Exception = failed
                kind = self._again(failed, message.topic, given)
            else:
                if result.status is SendStatus.SEND_OK or not self._options.retry_when_not_stored_ok:
                    return result
                stored, kind = result, Again.FEW_TIMES
            brokers = self._brokers(message.topic, given)
            broker = None if queue is None else queue.broker_name
            rest = retries.failed(broker, kind, brokers, self._clock.seconds())
            if rest:
                await task.deferLater(self._clock, rest)
            if rest is None or self._clock.seconds() >= retries.deadline:
                if stored is not None:
                    return stored
                raise self._failure(error, message.topic, queue, retries, total, given=given is not None)
            self.metrics.retries += 1

    def _again(self, error: Exception, topic: str, given: MessageQueue | None) -> Again:
        """Return how many retries a failure allows.

        A given queue is retried only after failures that pass. A topic that existed before may come back.
        """
        kind = again(error, self._options.retry_response_codes)
        if isinstance(error, TopicNotFound) and topic in self.infos:
            return Again.WHILE_TIME_REMAINS
        return Again.NEVER if given is not None and kind is Again.FEW_TIMES else kind

    def _brokers(self, topic: str, given: MessageQueue | None) -> set[str]:
        if given is not None:
            return {given.broker_name}
        info = self.infos.get(topic)
        return set() if info is None else {one.broker_name for one in info.queues}

    def _failure(
        self, error: Exception, topic: str, queue: MessageQueue | None, retries: Retries, total: float, *, given: bool
    ) -> Exception:
        """Return the error that the send fails with after its last try failed with this one."""
        if isinstance(error, BrokerError):
            if not given and error.response_code == ResponseCode.TOPIC_NOT_EXIST:
                return caused(TopicCreationRefused(topic, self._servers(), error.remark), error)
            if queue is not None and (given or error.response_code not in self._options.retry_response_codes):
                return caused(SendRefused(topic, queue.broker_name, error, self._servers()), error)
        final = again(error, self._options.retry_response_codes) is Again.NEVER
        if given or final or not retries.brokers:
            return error
        elapsed = total - (retries.deadline - self._clock.seconds())
        return SendFailed(topic, retries.brokers, elapsed, error, self._servers())

    def _servers(self) -> Sequence[str]:
        return self._client.name_servers.addresses

    async def _attempt_and_note(self, message: Outgoing, queue: MessageQueue, deadline: float) -> SendResult:
        began = self._client.now_ms()
        failed = True
        try:
            result = await self._attempt(message, queue, deadline)
            failed = False
        finally:
            now = self._client.now_ms()
            self._latency.record(queue.broker_name, now - began, now, failed=failed)
        return result

    async def _attempt(self, message: Outgoing, queue: MessageQueue, deadline: float) -> SendResult:
        placed = self._client.routes.placed(queue)
        if is_logical(placed.broker_name):
            placed = await self._located(queue)
        address = self._client.routes.master_now(placed.broker_name)
        if address is None or self._options.vip_channel:
            address = await self._address(placed)
        now = self._clock.seconds()
        request = self.requests.ready(message, placed, int(now * 1000))
        answer = self._client.remoting.invoke(address, request, max(0.0, deadline - now))
        return await self._result(message, queue, answer)

    async def _result(
        self, message: Outgoing, queue: MessageQueue, answer: defer.Deferred[RemotingCommand]
    ) -> SendResult:
        try:
            command = await answer
        except RemotingError:
            self.warm.discard(message.topic)
            raise
        self.warm.add(message.topic)
        return send_result(message.unique_key, queue, command)

    async def _located(self, queue: MessageQueue) -> MessageQueue:
        """Return the queue with its broker's name. From now on the client learns when a logical queue moves."""
        if is_logical(queue.broker_name):
            await self.info(queue.topic)
        return await self._client.routes.locate(queue)

    async def _address(self, queue: MessageQueue) -> str:
        """Return the queue's broker address. A given queue's topic may not have a route until its first send creates it."""
        routes = self._client.routes
        master = routes.master_now(queue.broker_name)
        if master is None:
            if routes.get(queue.topic) is None:
                await routes.find_or_default(queue.topic, self._options.default_topic_queue_nums)
            master = await routes.master(queue.broker_name, queue.topic)
        return vip_address(master) if self._options.vip_channel else master

    def _choose(self, info: TopicPublishInfo, last_broker: str | None) -> MessageQueue:
        queue = self._latency.select(info, last_broker, self._client.now_ms() if self._latency.enabled else 0)
        if queue is None:
            raise self._no_queue(info.topic)
        return queue


def caused(error: Exception, cause: Exception) -> Exception:
    """Return the error with its cause set, as `raise error from cause` does."""
    error.__cause__ = cause
    return error


def vip_address(address: str) -> str:
    """Return the fast port of a broker (Apache: MixAll.brokerVIPChannel)."""
    host, _, port = address.rpartition(":")
    return f"{host}:{int(port) - 2}"
