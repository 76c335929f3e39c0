"""Translates requests to logical queues of static topics, so that the processors see only the broker's own queues and offsets.

Apache: rewriteRequestForStaticTopic, rewriteResponseForStaticTopic of the processors. This broker answers for a logical
queue only if it takes the queue's writes; it asks other brokers for the older pieces that they hold.
A request with lo=false is about a queue as it is on this broker.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Protocol, TypeAlias

import attrs
from twisted.internet import defer

from twisted_mq.broker.clients.consumer_offset_manager import ConsumerOffsetManager
from twisted_mq.broker.processors.mapped_pulls import Pulled, from_pieces, shown
from twisted_mq.broker.topics.logic_queues import (
    Piece,
    Pieces,
    bounded_offset,
    is_closed,
    is_placed,
    logical_offset,
    physical_offset,
    piece_at,
)
from twisted_mq.broker.topics.other_brokers import OtherBrokers
from twisted_mq.broker.topics.static_topics import StaticTopics
from twisted_mq.protocol.boundary_type import BoundaryType
from twisted_mq.protocol.codes import RequestCode, ResponseCode
from twisted_mq.protocol.errors import BrokerError
from twisted_mq.protocol.flags import PullSysFlag
from twisted_mq.protocol.headers import (
    GetEarliestMsgStoretimeResponseHeader,
    GetMaxOffsetResponseHeader,
    GetMinOffsetResponseHeader,
    PullMessageRequestHeader,
    PullMessageResponseHeader,
    QueryConsumerOffsetRequestHeader,
    QueryConsumerOffsetResponseHeader,
    SearchOffsetRequestHeader,
    SearchOffsetResponseHeader,
    UpdateConsumerOffsetRequestHeader,
)
from twisted_mq.protocol.text.java import parse_int
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.protocol.wire.framing import decode_frame
from twisted_mq.protocol.wire.header_codec import decode_header, encode_header
from twisted_mq.remoting.channel import Answer, Channel, Processor, Ready
from twisted_mq.storage.interfaces import IMessageStore

OF_NEWER_SENDS = (RequestCode.SEND_MESSAGE_V2, RequestCode.SEND_BATCH_MESSAGE)
NAMES, NAMES_OF_NEWER_SENDS = ("topic", "queueId"), ("b", "e")
"""The fields that name topic and queue."""
SENDS = (RequestCode.SEND_MESSAGE, *OF_NEWER_SENDS)

NOT_LED = "{topic}-{queue} does not exit in request process of current broker {broker}"
NOT_LED_TEXTS: Mapping[int, str] = {
    RequestCode.PULL_MESSAGE: "{topic}-{queue} cannot find mapping item in request process of current broker {broker}",
    RequestCode.GET_MIN_OFFSET: "{topic}-{queue} is not leader in broker {broker}, request code 31",
}
NEW_GROUP = "Not found, maybe this group consumer boot first"

Serve: TypeAlias = Callable[[RemotingCommand], Answer]
Waited: TypeAlias = "Coroutine[defer.Deferred[Any], Any, RemotingCommand]"


class MappedParts(Protocol):
    """The parts of a broker that has static topics."""

    store: IMessageStore
    offsets: ConsumerOffsetManager
    static_topics: StaticTopics
    others: OtherBrokers


@attrs.frozen
class LogicQueue:
    """The logical queue that a request is about, whose writes this broker takes."""

    topic: str
    queue_id: int
    pieces: Pieces

    @property
    def leader(self) -> Piece:
        return self.pieces[-1]

    def at(self, offset: int) -> Piece:
        """Return the piece of a logical offset. Raises BrokerError while no piece has a known start."""
        piece = piece_at(self.pieces, offset)
        if piece is None:
            remark = f"{self.topic}-{self.queue_id} is being moved, and its first offset is not known yet"
            raise BrokerError(ResponseCode.SYSTEM_ERROR, remark)
        return piece


Rewrite: TypeAlias = Callable[["MappedRequests", LogicQueue, RemotingCommand, Serve], "Answer | Waited"]


class MappedRequests:
    """Puts the translation of logical queues before a table of processors, with `before`."""

    def __init__(self, broker: MappedParts) -> None:
        self._store = broker.store
        self._offsets = broker.offsets
        self._static = broker.static_topics
        self._others = broker.others

    def before(self, table: Mapping[int, Processor]) -> dict[int, Processor]:
        """Return the table with the requests about logical queues answered before its processors."""
        mapped = {int(code): self._mapped(rewrite, table[code]) for code, rewrite in REWRITES.items() if code in table}
        return {**table, **mapped}

    def _mapped(self, rewrite: Rewrite, processor: Processor) -> Processor:
        def answer(channel: Channel, command: RemotingCommand) -> Answer:
            queue = self._queue(command)
            if queue is None:
                return processor(channel, command)
            made = rewrite(self, queue, command, functools.partial(processor, channel))
            return defer.Deferred.fromCoroutine(made) if isinstance(made, Coroutine) else made

        return answer

    def _queue(self, command: RemotingCommand) -> LogicQueue | None:
        """Return the logical queue that a request is about, or None. Raises BrokerError if another broker leads it."""
        names = NAMES_OF_NEWER_SENDS if command.code in OF_NEWER_SENDS else NAMES
        topic, number = (command.ext_fields.get(name, "") for name in names)
        mapping = self._static.get(topic)
        if mapping is None or command.ext_fields.get("lo", "").lower() == "false":
            return None
        queue_id = parse_int(number)
        if queue_id is None:  # the processor reports what is wrong
            return None
        if queue_id < 0 and command.code in SENDS:
            queue_id = min((one for one in mapping.hosted_queues if self._static.led(topic, one)), default=queue_id)
        pieces = self._static.led(topic, queue_id)
        if pieces is None:
            text = NOT_LED_TEXTS.get(command.code, NOT_LED)
            remark = text.format(topic=topic, queue=queue_id, broker=self._static.broker_name)
            raise BrokerError(ResponseCode.NOT_LEADER_FOR_QUEUE, remark)
        return LogicQueue(topic, queue_id, pieces)

    def _is_here(self, piece: Piece) -> bool:
        return piece.bname == self._static.broker_name

    async def _ask(self, queue: LogicQueue, piece: Piece, code: int, fields: Mapping[str, str]) -> RemotingCommand:
        """Ask the broker of a piece. Raises BrokerError."""
        return await self._others.ask(piece.bname or "", queue.topic, code, {**fields, "queueId": str(piece.queue_id)})

    async def _number(
        self, queue: LogicQueue, piece: Piece, command: RemotingCommand, code: int, name: str, here: Callable[[], int]
    ) -> int:
        """Return a number of a piece's queue, from this broker or from the piece's. Raises BrokerError."""
        if self._is_here(piece):
            return here()
        answer = await self._ask(queue, piece, code, command.ext_fields)
        if answer.code != ResponseCode.SUCCESS:
            raise BrokerError(answer.code, answer.remark or "")
        return int(answer.ext_fields[name])

    # sends

    def send(self, queue: LogicQueue, command: RemotingCommand, serve: Serve) -> Answer:
        """Send to the queue that takes the writes; the answer names the logical one."""
        _, name = NAMES_OF_NEWER_SENDS if command.code in OF_NEWER_SENDS else NAMES
        leader = queue.leader

        def of_logic_queue(answer: RemotingCommand) -> None:
            fields = answer.ext_fields
            if "queueOffset" in fields:
                offset = bounded_offset(leader, int(fields["queueOffset"]))
                _change(answer, queueId=str(queue.queue_id), queueOffset=str(offset))

        return _then(serve(_changed(command, {name: str(leader.queue_id)})), of_logic_queue)

    # pulls

    def pull(self, queue: LogicQueue, command: RemotingCommand, serve: Serve) -> Answer | Waited:
        """Pull from the piece that holds the offset. Only pulls of the last piece wait, because the others have ended."""
        header = decode_header(PullMessageRequestHeader, command)
        piece = queue.at(header.queue_offset)
        asked = physical_offset(piece, header.queue_offset)
        fields = {"queueId": str(piece.queue_id), "queueOffset": str(asked), **_committed(header, queue, piece)}
        if is_closed(piece):
            fields["maxMsgNums"] = str(min(piece.end_offset - piece.start_offset, header.max_msg_nums))
        if not self._is_here(piece):
            return self._pull_elsewhere(queue, piece, _changed(command, fields), asked)
        return _then(serve(_changed(command, fields)), functools.partial(_of_pull, queue, piece, asked))

    async def _pull_elsewhere(
        self, queue: LogicQueue, piece: Piece, command: RemotingCommand, asked: int
    ) -> RemotingCommand:
        answer = await self._ask(queue, piece, RequestCode.PULL_MESSAGE, command.ext_fields)
        passed = command.answer(answer.code, answer.remark, answer.ext_fields, answer.body)
        _of_pull(queue, piece, asked, passed)
        return passed

    # committed offsets

    def update_offset(self, queue: LogicQueue, command: RemotingCommand, serve: Serve) -> Answer | Waited:
        """Commit at the piece that holds the offset."""
        offset = decode_header(UpdateConsumerOffsetRequestHeader, command).commit_offset
        piece = queue.at(offset)
        fields = {"queueId": str(piece.queue_id), "commitOffset": str(physical_offset(piece, offset))}
        moved = _changed(command, fields)
        return serve(moved) if self._is_here(piece) else self._hand_on(queue, piece, moved)

    async def _hand_on(self, queue: LogicQueue, piece: Piece, command: RemotingCommand) -> RemotingCommand:
        answer = await self._ask(queue, piece, command.code, command.ext_fields)
        return command.answer(answer.code, answer.remark, answer.ext_fields, answer.body)

    def query_offset(self, queue: LogicQueue, command: RemotingCommand, serve: Serve) -> Answer | Waited:
        """Return the offset of the newest piece at which the group committed."""
        if len(queue.pieces) == 1 and queue.leader.logic_offset == 0:
            return serve(_changed(command, {"queueId": str(queue.leader.queue_id)}))
        return self._query_offset(queue, command)

    async def _query_offset(self, queue: LogicQueue, command: RemotingCommand) -> RemotingCommand:
        group = decode_header(QueryConsumerOffsetRequestHeader, command).consumer_group
        for piece in reversed(queue.pieces):
            offset = await self._committed(queue, piece, command, group)
            if offset is not None:
                return _answer(command, QueryConsumerOffsetResponseHeader(offset=logical_offset(piece, offset)))
        raise BrokerError(ResponseCode.QUERY_NOT_FOUND, NEW_GROUP)

    async def _committed(self, queue: LogicQueue, piece: Piece, command: RemotingCommand, group: str) -> int | None:
        if self._is_here(piece):
            return self._offsets.query(group, queue.topic, piece.queue_id)
        fields = {**command.ext_fields, "setZeroIfNotFound": "false"}
        answer = await self._ask(queue, piece, RequestCode.QUERY_CONSUMER_OFFSET, fields)
        if answer.code == ResponseCode.QUERY_NOT_FOUND:
            return None
        if answer.code != ResponseCode.SUCCESS:
            raise BrokerError(ResponseCode.SYSTEM_ERROR, f"Unknown response code {answer.code}")
        return int(answer.ext_fields["offset"])

    # ends and times

    async def max_offset(self, queue: LogicQueue, command: RemotingCommand, serve: Serve) -> RemotingCommand:
        """Return the offset after the last message."""
        piece = [one for one in queue.pieces if is_placed(one)][-1] if queue.at(0) else queue.leader
        offset = await self._number(
            queue, piece, command, RequestCode.GET_MAX_OFFSET, "offset",
            lambda: self._store.max_offset_in_queue(queue.topic, piece.queue_id),
        )  # fmt: skip
        return _answer(command, GetMaxOffsetResponseHeader(offset=logical_offset(piece, offset)))

    async def min_offset(self, queue: LogicQueue, command: RemotingCommand, serve: Serve) -> RemotingCommand:
        """Return the offset of the first message."""
        piece = queue.at(0)
        offset = await self._number(
            queue, piece, command, RequestCode.GET_MIN_OFFSET, "offset",
            lambda: self._store.min_offset_in_queue(queue.topic, piece.queue_id),
        )  # fmt: skip
        return _answer(command, GetMinOffsetResponseHeader(offset=bounded_offset(piece, offset)))

    async def earliest_time(self, queue: LogicQueue, command: RemotingCommand, serve: Serve) -> RemotingCommand:
        """Return the time when the first message was stored."""
        timestamp = await self._earliest(queue, queue.at(0), command)
        return _answer(command, GetEarliestMsgStoretimeResponseHeader(timestamp=timestamp))

    async def _earliest(self, queue: LogicQueue, piece: Piece, command: RemotingCommand) -> int:
        return await self._number(
            queue, piece, command, RequestCode.GET_EARLIEST_MSG_STORETIME, "timestamp",
            lambda: self._store.earliest_message_time(queue.topic, piece.queue_id),
        )  # fmt: skip

    async def search_offset(self, queue: LogicQueue, command: RemotingCommand, serve: Serve) -> RemotingCommand:
        """Return the offset of the message stored at a time, in the newest piece whose first message is older."""
        header = decode_header(SearchOffsetRequestHeader, command)
        piece = queue.at(0)
        for newer in reversed([one for one in queue.pieces if is_placed(one)]):
            if 0 <= await self._earliest(queue, newer, command) < header.timestamp:
                piece = newer
                break
        boundary = header.boundary_type or BoundaryType.LOWER
        offset = await self._number(
            queue, piece, command, RequestCode.SEARCH_OFFSET_BY_TIMESTAMP, "offset",
            lambda: self._store.offset_by_time(queue.topic, piece.queue_id, header.timestamp, boundary),
        )  # fmt: skip
        return _answer(command, SearchOffsetResponseHeader(offset=logical_offset(piece, offset)))


REWRITES: Mapping[RequestCode, Rewrite] = {
    **dict.fromkeys(SENDS, MappedRequests.send),
    RequestCode.PULL_MESSAGE: MappedRequests.pull,
    RequestCode.LITE_PULL_MESSAGE: MappedRequests.pull,
    RequestCode.UPDATE_CONSUMER_OFFSET: MappedRequests.update_offset,
    RequestCode.QUERY_CONSUMER_OFFSET: MappedRequests.query_offset,
    RequestCode.GET_MAX_OFFSET: MappedRequests.max_offset,
    RequestCode.GET_MIN_OFFSET: MappedRequests.min_offset,
    RequestCode.GET_EARLIEST_MSG_STORETIME: MappedRequests.earliest_time,
    RequestCode.SEARCH_OFFSET_BY_TIMESTAMP: MappedRequests.search_offset,
}


def _changed(command: RemotingCommand, fields: Mapping[str, str]) -> RemotingCommand:
    """Return the request with other fields, as if it had arrived so."""
    made = attrs.evolve(command)
    made.replace_fields({**command.ext_fields, **fields})
    return made


def _committed(header: PullMessageRequestHeader, queue: LogicQueue, piece: Piece) -> dict[str, str]:
    """Return a pull's flags and the offset that it commits. It commits none if that offset is in another piece."""
    flags = header.sys_flag
    if piece is not queue.leader:
        flags &= ~PullSysFlag.FLAG_SUSPEND
    if queue.at(header.commit_offset) is not piece:
        return {"sysFlag": str(flags & ~PullSysFlag.FLAG_COMMIT_OFFSET)}
    return {"sysFlag": str(flags), "commitOffset": str(physical_offset(piece, header.commit_offset))}


def _of_pull(queue: LogicQueue, piece: Piece, asked: int, answer: RemotingCommand) -> None:
    """Change the answer of a piece into that of the logical queue."""
    if "nextBeginOffset" not in answer.ext_fields:  # refused
        return
    header = decode_header(PullMessageResponseHeader, answer)
    pulled = Pulled(answer.code, header.next_begin_offset, header.min_offset, header.max_offset)
    seen, seen_in = from_pieces(pulled, asked, queue.pieces, piece)
    answer.code = seen.code
    _change(answer, **shown(seen, queue.pieces, seen_in))


def _answer(command: RemotingCommand, header: attrs.AttrsInstance) -> RemotingCommand:
    return command.answer(ext_fields=encode_header(header))


def _change(answer: RemotingCommand, **fields: str) -> None:
    answer.replace_fields({**answer.ext_fields, **fields})


def _then(answer: Answer, change: Callable[[RemotingCommand], None]) -> Answer:
    """Return the answer, changed once it is there."""
    if isinstance(answer, defer.Deferred):
        return answer.addCallback(_of_ready, change)
    return _of_ready(answer, change)


def _of_ready(answer: Ready, change: Callable[[RemotingCommand], None]) -> Ready:
    if answer is None:
        return None
    command = answer if isinstance(answer, RemotingCommand) else decode_frame(bytes(answer))
    change(command)
    return command
