"""Sends the messages of one partition: in frames, several under way, each queue's in order.

Messages of a lane, which is a queue, have one frame under way at a time and the next one behind its answer, so their order
is kept whatever the broker's threads do. Frames under way and waiting are bounded; past the bound an answer is waited for.
A frame without an answer is sent again: what it holds may be stored twice, with the same ids.
"""

from __future__ import annotations

import collections
import time
from collections.abc import Callable

import attrs

from twisted_mq.protocol.bodies import MessageQueue
from twisted_mq.protocol.codes import ResponseCode
from twisted_mq.protocol.text.java import java_hash
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.spark.live.cluster import Cluster
from twisted_mq.spark.live.connection import Connection
from twisted_mq.spark.live.errors import BrokerSilent, PeerSilent, TopicUnknown
from twisted_mq.spark.sink.columns import Outgoing
from twisted_mq.spark.sink.errors import RowsRefused, WrongRow
from twisted_mq.spark.sink.frames import Frame

STORED = frozenset(
    {
        ResponseCode.SUCCESS,
        ResponseCode.FLUSH_DISK_TIMEOUT,
        ResponseCode.FLUSH_SLAVE_TIMEOUT,
        ResponseCode.SLAVE_NOT_AVAILABLE,
    }
)
"""The broker has the messages; only SUCCESS keeps every promise of its settings."""
PASSING = frozenset(
    {
        ResponseCode.SERVICE_NOT_AVAILABLE,
        ResponseCode.SYSTEM_ERROR,
        ResponseCode.SYSTEM_BUSY,
        ResponseCode.NO_PERMISSION,
        ResponseCode.GO_AWAY,
    }
)
"""Refusals that a later try, or another broker, might not give."""


@attrs.frozen
class SendLimits:
    """Of a frame its messages and bytes; how many frames are under way or wait."""

    messages: int = 500
    size_bytes: int = 512 * 1024
    in_flight: int = 8


@attrs.define(eq=False)
class Lane:
    """The frames for one queue; `pinned` says that no other queue will do. The first of `frames` may be under way.

    `under_way` is the connection and the number of its request.
    """

    topic: str
    queue: MessageQueue
    pinned: bool
    filling: Frame = attrs.field(factory=Frame)
    frames: collections.deque[Frame] = attrs.field(factory=collections.deque)
    under_way: tuple[Connection, int] | None = None
    failures: int = 0
    failing_since: float = 0.0


class PartitionSender:
    """One partition's messages; `turn` picks the queue of those that may go to any.

    `sent` counts stored messages, `doubtful` those of them that are not yet as safe as the broker is set to make them.
    """

    def __init__(
        self,
        cluster: Cluster,
        group: str,
        partition: int,
        turn: int,
        limits: SendLimits,
        now_ms: Callable[[], int],
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """`monotonic`: seconds that no clock set back or forth changes."""
        self._monotonic = monotonic
        self.sent = 0
        self.doubtful = 0
        self._cluster = cluster
        self._group = group
        self._partition = partition
        self._turn = turn
        self._limits = limits
        self._now_ms = now_ms
        self._filling_bytes = 0
        self._queues: dict[str, tuple[MessageQueue, ...]] = {}
        self._lanes: dict[tuple[str, MessageQueue | None], Lane] = {}
        self._under_way: collections.deque[Lane] = collections.deque()

    def check(self, message: Outgoing) -> None:
        """Raises WrongRow for a queue that the topic does not have, TopicUnknown."""
        self._queue_for(message)

    def add(self, message: Outgoing) -> None:
        """Raises SinkError, LiveError: of this message or of an earlier one."""
        lane = self._lane(message)
        if not lane.filling.takes(message, self._limits.messages, self._limits.size_bytes):
            self._close_frame(lane)
        before = lane.filling.size
        lane.filling.add(message)
        self._filling_bytes += lane.filling.size - before
        if self._filling_bytes > self._limits.in_flight * self._limits.size_bytes:
            self._close_frame(max(self._lanes.values(), key=lambda one: one.filling.size))

    def flush(self) -> None:
        """Send what is left, and wait for all answers."""
        for lane in self._lanes.values():
            if lane.filling.messages:
                self._close_frame(lane)
        while self._under_way:
            self._wait()

    # lanes

    def _lane(self, message: Outgoing) -> Lane:
        queue, pinned = self._queue_for(message)
        key = message.topic, queue if pinned else None
        lane = self._lanes.get(key)
        if lane is None:
            lane = self._lanes[key] = Lane(message.topic, queue, pinned)
        return lane

    def _queue_for(self, message: Outgoing) -> tuple[MessageQueue, bool]:
        """The queue, and whether it must be that one. Raises WrongRow, TopicUnknown."""
        queues = self._queues.get(message.topic)
        if queues is None:
            queues = self._queues[message.topic] = self._writable(message.topic)
        place = message.place
        if place is None:
            return queues[self._turn % len(queues)], False
        if isinstance(place, str):
            return queues[abs(java_hash(place)) % len(queues)], True
        if 0 <= place < len(queues):
            return queues[place], True
        reason = f"queue {place}: {message.topic} has {len(queues)} that are written, numbered from 0"
        raise WrongRow(message.row, self._partition, reason)

    def _writable(self, topic: str) -> tuple[MessageQueue, ...]:
        queues = self._cluster.writable_queues(topic)
        if not queues:
            raise BrokerSilent(f"of topic {topic}", ["none takes messages for it now"], self._cluster.host)
        return queues

    def _now_writable(self, topic: str) -> tuple[MessageQueue, ...]:
        """None where the name servers have forgotten the topic with its last broker."""
        try:
            return self._cluster.writable_queues(topic)
        except TopicUnknown:
            return ()

    def _close_frame(self, lane: Lane) -> None:
        """Let what was filled follow, as soon as the bound allows."""
        self._filling_bytes -= lane.filling.size
        lane.frames.append(lane.filling)
        lane.filling = Frame()
        if lane.under_way is None:
            self._send(lane)
        while sum(len(one.frames) for one in self._under_way) > self._limits.in_flight:
            self._wait()

    # sending

    def _send(self, lane: Lane) -> None:
        """The first frame of a lane; again until some broker has it on its way. Raises BrokerSilent."""
        while lane.under_way is None:
            request = lane.frames[0].request(lane.queue, self._group, self._now_ms())
            try:
                connection = self._cluster.connection(self._cluster.master(lane.queue.broker_name))
                lane.under_way = connection, connection.send(request)
            except PeerSilent as error:
                self._failed(lane, error)
        self._under_way.append(lane)

    def _wait(self) -> None:
        """For the answer that is under way longest; others that come before it over its connection are taken too."""
        assert self._under_way[0].under_way is not None
        connection, _ = self._under_way[0].under_way
        try:
            answer = connection.receive()
        except PeerSilent as error:
            self._lost(connection, error)
            return
        for lane in self._under_way:
            if lane.under_way == (connection, answer.opaque):
                self._under_way.remove(lane)
                self._answered(lane, answer, connection.address)
                return

    def _lost(self, connection: Connection, error: PeerSilent) -> None:
        """Send again whatever was under way over a connection that ended."""
        lanes = [lane for lane in self._under_way if lane.under_way is not None and lane.under_way[0] is connection]
        for lane in lanes:
            self._under_way.remove(lane)
            lane.under_way = None
        for lane in lanes:
            self._failed(lane, error)
            self._send(lane)

    def _answered(self, lane: Lane, answer: RemotingCommand, address: str) -> None:
        lane.under_way = None
        frame = lane.frames[0]
        if answer.code in STORED:
            lane.frames.popleft()
            lane.failures = 0
            self.sent += len(frame.messages)
            self.doubtful += len(frame.messages) if answer.code != ResponseCode.SUCCESS else 0
        elif answer.code in PASSING:
            self._failed(lane, PeerSilent(address, f"refuses for now: code {answer.code}, {answer.remark}"))
        else:
            raise RowsRefused(*frame.rows, self._partition, address, answer.code, answer.remark or "no remark")
        if lane.frames:
            self._send(lane)

    def _failed(self, lane: Lane, error: PeerSilent) -> None:
        """Pause and learn the route anew; after half of the tries take a queue of another broker. Raises BrokerSilent."""
        tries = self._cluster.access.tries
        lane.failures += 1
        lane.failing_since = self._monotonic() if lane.failures == 1 else lane.failing_since
        waited = self._monotonic() - lane.failing_since
        if lane.failures >= 2 * tries and self._cluster.access.is_over(lane.failures, waited):
            raise BrokerSilent(lane.queue.broker_name, [str(error)], self._cluster.host)
        self._cluster.pause(lane.failures)
        others = [queue for queue in self._now_writable(lane.topic) if queue.broker_name != lane.queue.broker_name]
        if lane.failures == tries and others and not lane.pinned:
            lane.queue = others[self._turn % len(others)]
