"""A small name server and small brokers in memory, speaking real frames, for tests of the client.

    cluster = FakeCluster(clock)
    broker = cluster.add_broker("broker-a", queues={"T": 2})
    producer = Producer(clock, "g", cluster.namesrv, connect=cluster.network.connect, ip="10.0.0.9")

Their requests are in `asked`; `refuse` and `silent` make single request codes fail.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any

import attrs
from twisted.internet import defer
from twisted.internet.task import Clock

from tests.support.remoting import MemoryNetwork
from twisted_mq.protocol.bodies import (
    BrokerData,
    CheckClientRequestBody,
    GetConsumerListByGroupResponseBody,
    HeartbeatData,
    LockBatchRequestBody,
    LockBatchResponseBody,
    MessageQueue,
    QueueData,
    TopicRouteData,
    UnlockBatchRequestBody,
    decode_body,
    encode_body,
)
from twisted_mq.protocol.codes import RequestCode, ResponseCode
from twisted_mq.protocol.errors import BrokerError
from twisted_mq.protocol.headers import (
    ConsumerSendMsgBackRequestHeader,
    EndTransactionRequestHeader,
    GetConsumerListByGroupRequestHeader,
    GetRouteInfoRequestHeader,
    NotifyConsumerIdsChangedRequestHeader,
    PullMessageRequestHeader,
    PullMessageResponseHeader,
    QueryConsumerOffsetRequestHeader,
    RecallMessageRequestHeader,
    SearchOffsetRequestHeader,
    SendMessageRequestHeaderV2,
    SendMessageResponseHeader,
    UnregisterClientRequestHeader,
    UpdateConsumerOffsetRequestHeader,
)
from twisted_mq.protocol.layouts.batch_entry import iterate_batch
from twisted_mq.protocol.layouts.host import pack_host
from twisted_mq.protocol.layouts.record_codec import encode_record
from twisted_mq.protocol.messages.order_mark import ORDER_TERM
from twisted_mq.protocol.text.properties import decode_properties
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.protocol.wire.header_codec import decode_header, encode_header
from twisted_mq.remoting.channel import Channel
from twisted_mq.remoting.server import RemotingServerFactory
from twisted_mq.remoting.socket_channel import Traffic

HOST = pack_host("127.0.0.1", 10911)


class _FakeServer:
    """Common part of name server and broker: the served codes, the record of requests, failures on demand."""

    def __init__(self, network: MemoryNetwork, address: str, processors: dict[int, Callable[..., Any]]) -> None:
        self.address = address
        self.asked: list[tuple[RequestCode, Any]] = []
        self.terms_committed: list[str | None] = []
        self.refuse: dict[int, BrokerError] = {}
        self.silent: set[int] = set()
        served = {code: self._guarded(code, processor) for code, processor in processors.items()}
        self.factory = RemotingServerFactory(Traffic(served, network.clock, channel_lost=self.channel_lost))
        network.listen(address, self.factory)

    def channel_lost(self, channel: Channel) -> None:
        """A client's connection ended."""

    def _guarded(self, code: int, processor: Callable[..., Any]) -> Callable[..., Any]:
        def process(channel: Channel, request: RemotingCommand) -> Any:
            if code in self.silent:
                self.asked.append((RequestCode(code), None))
                return None
            if code in self.refuse:
                self.asked.append((RequestCode(code), None))
                raise self.refuse[code]
            return processor(channel, request)

        return process

    def note(self, request: RemotingCommand, header_class: type[Any]) -> Any:
        header = decode_header(header_class, request)
        self.asked.append((RequestCode(request.code), header))
        return header

    def headers(self, code: RequestCode) -> list[Any]:
        """The headers of all requests of that code so far."""
        return [header for asked, header in self.asked if asked == code]


class FakeNameServer(_FakeServer):
    """Answers route queries from the table that all name servers of a cluster share."""

    def __init__(self, network: MemoryNetwork, address: str, routes: dict[str, TopicRouteData]) -> None:
        self.routes = routes
        super().__init__(network, address, {RequestCode.GET_ROUTEINFO_BY_TOPIC: self._route})

    def _route(self, channel: Channel, request: RemotingCommand) -> RemotingCommand:
        topic = self.note(request, GetRouteInfoRequestHeader).topic
        if topic not in self.routes:
            raise BrokerError(
                ResponseCode.TOPIC_NOT_EXIST, f"No topic route info in name server for the topic: {topic}"
            )
        return request.answer(body=encode_body(self.routes[topic], standard=True))


@attrs.frozen
class Stored:
    """A message that a broker has."""

    record: bytes
    properties: dict[str, str]
    body: bytes
    sys_flag: int


class FakeBroker(_FakeServer):
    """Keeps messages and offsets in lists. A topic's first message makes its queues."""

    def __init__(self, network: MemoryNetwork, name: str, address: str) -> None:
        self.name = name
        self.queues: dict[tuple[str, int], list[Stored]] = {}
        self.min_offsets: dict[tuple[str, int], int] = {}
        self.offsets: dict[tuple[str, str, int], int] = {}
        self.members: dict[str, dict[str, Channel]] = {}
        self.producers: dict[str, Channel] = {}
        self.heartbeats: list[HeartbeatData] = []
        self.sent_back: list[ConsumerSendMsgBackRequestHeader] = []
        self.delayed: list[tuple[str, dict[str, str], SendMessageRequestHeaderV2]] = []
        """Messages with a delay level: (topic, properties, header). They are never delivered."""
        self.config = ""
        """Answer to GET_BROKER_CONFIG."""
        self.locks: dict[MessageQueue, str] = {}
        """Owners of queues; all groups of a test are one."""
        self._parked: list[tuple[defer.Deferred[Any], RemotingCommand, PullMessageRequestHeader]] = []
        self._log_size = 0
        super().__init__(
            network,
            address,
            {
                RequestCode.SEND_MESSAGE_V2: self._send,
                RequestCode.SEND_BATCH_MESSAGE: self._send,
                RequestCode.SEND_REPLY_MESSAGE_V2: self._send,
                RequestCode.PULL_MESSAGE: self._pull,
                RequestCode.LITE_PULL_MESSAGE: self._pull,
                RequestCode.HEART_BEAT: self._heartbeat,
                RequestCode.UNREGISTER_CLIENT: self._unregister,
                RequestCode.GET_CONSUMER_LIST_BY_GROUP: self._consumer_ids,
                RequestCode.QUERY_CONSUMER_OFFSET: self._query_offset,
                RequestCode.UPDATE_CONSUMER_OFFSET: self._update_offset,
                RequestCode.GET_MAX_OFFSET: self._max_offset,
                RequestCode.GET_MIN_OFFSET: self._min_offset,
                RequestCode.SEARCH_OFFSET_BY_TIMESTAMP: self._search_offset,
                RequestCode.CONSUMER_SEND_MSG_BACK: self._send_back,
                RequestCode.RECALL_MESSAGE: self._recall,
                RequestCode.CHECK_CLIENT_CONFIG: self._check_client,
                RequestCode.END_TRANSACTION: self._end_transaction,
                RequestCode.LOCK_BATCH_MQ: self._lock,
                RequestCode.UNLOCK_BATCH_MQ: self._unlock,
                RequestCode.GET_BROKER_CONFIG: lambda _, request: request.answer(body=self.config.encode()),
            },
        )

    # what tests do with it

    def put(self, topic: str, queue_id: int, *bodies: bytes, properties: str = "") -> None:
        """Store messages, and answer the pulls that wait for them."""
        for body in bodies:
            self._store(topic, queue_id, body, properties, 0)
        self._wake()

    def client(self, group: str) -> Channel:
        """The connection of a group's only member."""
        (channel,) = self.members[group].values()
        return channel

    def notify(self, group: str) -> None:
        """Tell the members of a group that it has changed."""
        header = encode_header(NotifyConsumerIdsChangedRequestHeader(consumer_group=group))
        for channel in self.members.get(group, {}).values():
            channel.send_one_way(RemotingCommand.request(RequestCode.NOTIFY_CONSUMER_IDS_CHANGED, dict(header)))

    # requests

    def channel_lost(self, channel: Channel) -> None:
        for group in self.members.values():
            for client_id in [one for one, theirs in group.items() if theirs is channel]:
                del group[client_id]

    def _store(self, topic: str, queue_id: int, body: bytes, properties: str, sys_flag: int) -> tuple[str, int]:
        queue = self.queues.setdefault((topic, queue_id), [])
        record = encode_record(
            topic.encode(),
            body,
            properties.encode(),
            queue_id=queue_id,
            queue_offset=len(queue),
            physical_offset=self._log_size,
            born_timestamp=1,
            born_host=HOST,
            store_timestamp=2,
            store_host=HOST,
            sys_flag=sys_flag,
        )
        plain = zlib.decompress(body) if sys_flag & 1 else body
        queue.append(Stored(record, decode_properties(properties), plain, sys_flag))
        offset_id = f"{HOST.hex().upper()}{self._log_size:016X}"
        self._log_size += len(record)
        return offset_id, len(queue) - 1

    def _send(self, channel: Channel, request: RemotingCommand) -> RemotingCommand:
        header = self.note(request, SendMessageRequestHeaderV2)
        if header.batch:
            stored = [
                self._store(header.topic, header.queue_id, entry.body, entry.properties.decode(), 0)
                for entry in iterate_batch(request.body)
            ]
        elif "DELAY" in decode_properties(header.properties or ""):
            self.delayed.append((header.topic, decode_properties(header.properties), header))
            stored = [(f"{HOST.hex().upper()}{self._log_size:016X}", 0)]
        else:
            stored = [
                self._store(header.topic, header.queue_id, request.body, header.properties or "", header.sys_flag)
            ]
        self._wake()
        answer = SendMessageResponseHeader(
            msg_id=",".join(one for one, _ in stored), queue_id=header.queue_id, queue_offset=stored[0][1]
        )
        return request.answer(ext_fields=encode_header(answer))

    def _pull(self, channel: Channel, request: RemotingCommand) -> Any:
        header = self.note(request, PullMessageRequestHeader)
        answer = self._pull_now(request, header)
        if answer.code != ResponseCode.PULL_NOT_FOUND:
            return answer
        later: defer.Deferred[Any] = defer.Deferred()
        self._parked.append((later, request, header))
        return later

    def _pull_now(self, request: RemotingCommand, header: PullMessageRequestHeader) -> RemotingCommand:
        key = (header.topic, header.queue_id)
        queue, least = self.queues.get(key, []), self.min_offsets.get(key, 0)
        found = queue[header.queue_offset : header.queue_offset + header.max_msg_nums]
        code, next_offset = ResponseCode.SUCCESS, header.queue_offset + len(found)
        if not least <= header.queue_offset <= len(queue):
            code, found, next_offset = ResponseCode.PULL_OFFSET_MOVED, [], least
        elif not found:
            code = ResponseCode.PULL_NOT_FOUND
        answer = PullMessageResponseHeader(
            suggest_which_broker_id=0, next_begin_offset=next_offset, min_offset=least, max_offset=len(queue)
        )
        return request.answer(code, None, encode_header(answer), b"".join(one.record for one in found))

    def _wake(self) -> None:
        parked, self._parked = self._parked, []
        for later, request, header in parked:
            answer = self._pull_now(request, header)
            if answer.code == ResponseCode.PULL_NOT_FOUND:
                self._parked.append((later, request, header))
            else:
                later.callback(answer)

    def _heartbeat(self, channel: Channel, request: RemotingCommand) -> RemotingCommand:
        data = decode_body(HeartbeatData, request.body)
        self.asked.append((RequestCode.HEART_BEAT, data))
        self.heartbeats.append(data)
        self.producers.update({producer.group_name: channel for producer in data.producer_data_set})
        for consumer in data.consumer_data_set:
            group = self.members.setdefault(consumer.group_name, {})
            if data.client_id not in group:
                group[data.client_id] = channel
                self.notify(consumer.group_name)
        return request.answer()

    def _unregister(self, channel: Channel, request: RemotingCommand) -> RemotingCommand:
        header = self.note(request, UnregisterClientRequestHeader)
        if header.consumer_group is not None:
            self.members.get(header.consumer_group, {}).pop(header.client_id, None)
            self.notify(header.consumer_group)
        return request.answer()

    def _consumer_ids(self, channel: Channel, request: RemotingCommand) -> RemotingCommand:
        group = self.note(request, GetConsumerListByGroupRequestHeader).consumer_group
        if not self.members.get(group):
            raise BrokerError(ResponseCode.SYSTEM_ERROR, f"no consumer for this group, {group}")
        ids = sorted(self.members[group])
        return request.answer(body=encode_body(GetConsumerListByGroupResponseBody(consumer_id_list=ids)))

    def _query_offset(self, channel: Channel, request: RemotingCommand) -> RemotingCommand:
        header = self.note(request, QueryConsumerOffsetRequestHeader)
        offset = self.offsets.get((header.consumer_group, header.topic, header.queue_id))
        if offset is None:
            raise BrokerError(ResponseCode.QUERY_NOT_FOUND, "Not found")
        return request.answer(ext_fields={"offset": str(offset)})

    def _update_offset(self, channel: Channel, request: RemotingCommand) -> RemotingCommand:
        header = self.note(request, UpdateConsumerOffsetRequestHeader)
        self.offsets[(header.consumer_group, header.topic, header.queue_id)] = header.commit_offset
        self.terms_committed.append(request.ext_fields.get(ORDER_TERM))
        return request.answer()

    def _max_offset(self, channel: Channel, request: RemotingCommand) -> RemotingCommand:
        fields = request.ext_fields
        queue = self.queues.get((fields["topic"], int(fields["queueId"])), [])
        return request.answer(ext_fields={"offset": str(len(queue))})

    def _min_offset(self, channel: Channel, request: RemotingCommand) -> RemotingCommand:
        key = (request.ext_fields["topic"], int(request.ext_fields["queueId"]))
        return request.answer(ext_fields={"offset": str(self.min_offsets.get(key, 0))})

    def _search_offset(self, channel: Channel, request: RemotingCommand) -> RemotingCommand:
        self.note(request, SearchOffsetRequestHeader)
        return request.answer(ext_fields={"offset": "1"})

    def _lock(self, channel: Channel, request: RemotingCommand) -> RemotingCommand:
        body = decode_body(LockBatchRequestBody, request.body)
        self.asked.append((RequestCode.LOCK_BATCH_MQ, body))
        got = [one for one in body.mq_set if self.locks.setdefault(one, body.client_id) == body.client_id]
        return request.answer(body=encode_body(LockBatchResponseBody(lock_ok_mq_set=got)))

    def _unlock(self, channel: Channel, request: RemotingCommand) -> RemotingCommand:
        body = decode_body(UnlockBatchRequestBody, request.body)
        self.asked.append((RequestCode.UNLOCK_BATCH_MQ, body))
        for one in body.mq_set:
            if self.locks.get(one) == body.client_id:
                del self.locks[one]
        return request.answer()

    def _recall(self, channel: Channel, request: RemotingCommand) -> RemotingCommand:
        self.note(request, RecallMessageRequestHeader)
        return request.answer(ext_fields={"msgId": "RECALLED"})

    def _check_client(self, channel: Channel, request: RemotingCommand) -> RemotingCommand:
        self.asked.append((RequestCode.CHECK_CLIENT_CONFIG, decode_body(CheckClientRequestBody, request.body)))
        return request.answer()

    def _end_transaction(self, channel: Channel, request: RemotingCommand) -> None:
        self.note(request, EndTransactionRequestHeader)

    def _send_back(self, channel: Channel, request: RemotingCommand) -> RemotingCommand:
        self.sent_back.append(self.note(request, ConsumerSendMsgBackRequestHeader))
        return request.answer()


class FakeCluster:
    """Name servers and brokers over one network in memory."""

    def __init__(self, clock: Clock, name_servers: int = 1) -> None:
        self.network = MemoryNetwork(clock)
        self.routes: dict[str, TopicRouteData] = {}
        self.name_servers = [
            FakeNameServer(self.network, f"10.0.0.{number}:9876", self.routes) for number in range(1, name_servers + 1)
        ]
        self.brokers: dict[str, FakeBroker] = {}

    @property
    def namesrv(self) -> str:
        return ";".join(one.address for one in self.name_servers)

    def add_broker(
        self, name: str, queues: dict[str, int], *, perm: int = 6, kind: type[FakeBroker] = FakeBroker
    ) -> FakeBroker:
        """A broker that has these topics with so many queues each."""
        address = f"10.0.1.{len(self.brokers) + 1}:10911"
        broker = self.brokers[name] = kind(self.network, name, address)
        for topic, count in queues.items():
            self.add_route(topic, name, count, perm)
        return broker

    def add_route(self, topic: str, name: str, count: int, perm: int = 6) -> None:
        known = self.routes.get(topic, TopicRouteData())
        data = QueueData(broker_name=name, read_queue_nums=count, write_queue_nums=count, perm=perm)
        broker = BrokerData("DefaultCluster", name, {0: self.brokers[name].address})
        self.routes[topic] = attrs.evolve(
            known, queue_datas=[*known.queue_datas, data], broker_datas=[*known.broker_datas, broker]
        )

    def kill(self, name: str) -> None:
        """A broker dies; its routes stay, as for the two minutes until a name server notices."""
        self.network.close(self.brokers[name].address)
