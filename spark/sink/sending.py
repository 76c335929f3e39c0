"""Send the messages of one partition in frames: several in flight, those of each queue in order.

A lane belongs to a queue. It has one frame in flight at a time, and sends the next one after the answer, so the order is kept
independent of the broker's threads. The number of frames in flight and waiting is bounded; at the bound the sender waits for an
answer. A frame without an answer is sent again: its messages may be stored twice, with the same ids.
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
from twisted_mq.spark.live.connection import PeerConnection
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
"""Codes of stored messages; only SUCCESS means that all settings of the broker were followed."""
PASSING = frozenset(
    {
        ResponseCode.SERVICE_NOT_AVAILABLE,
        ResponseCode.SYSTEM_ERROR,
        ResponseCode.SYSTEM_BUSY,
        ResponseCode.NO_PERMISSION,
        ResponseCode.GO_AWAY,
    }
)
"""Codes of refusals that a retry, or another broker, can avoid."""


@attrs.frozen
class SendLimits:
    """Limits of a frame's messages and bytes, and of the number of frames in flight or waiting."""

    messages: int = 500
    size_bytes: int = 512 * 1024
    in_flight: int = 8


@attrs.define(eq=False)
class Lane:
    """The frames for one queue; `pinned`: no other queue is allowed. The first of `frames` may be in flight.

    `under_way` is the connection and the number of the request in flight.
    """

    topic: str
    queue: MessageQueue
    pinned: bool
    filling: Frame = attrs.field(factory=Frame)
    frames: collections.deque[Frame] = attrs.field(factory=collections.deque)
    under_way: tuple[PeerConnection, int] | None = None
    failures: int = 0
    failing_since: float = 0.0


class PartitionSender:
    """Sender of one partition's messages; `turn` selects the queue of messages for any queue.

    `sent` counts stored messages, `doubtful` those that are not flushed or replicated as the broker is configured.
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
        """`monotonic`: monotonic time in seconds."""
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
        """Check a message. Raises WrongRow for a queue that the topic does not have, TopicUnknown."""
        self._queue_for(message)

    def add(self, message: Outgoing) -> None:
        """Add a message. Raises SinkError or LiveError for this message or an earlier one."""
        lane = self._lane(message)
        if not lane.filling.takes(message, self._limits.messages, self._limits.size_bytes):
            self._close_frame(lane)
        before = lane.filling.size
        lane.filling.add(message)
        self._filling_bytes += lane.filling.size - before
        if self._filling_bytes > self._limits.in_flight * self._limits.size_bytes:
            self._close_frame(max(self._lanes.values(), key=lambda one: one.filling.size))

    def flush(self) -> None:
        """Send remaining messages, and wait for all answers."""
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
        """Return the queue, and True if it must be that one. Raises WrongRow, TopicUnknown."""
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
        reason = f"queue {place}: {message.topic} has {len(queues)} writable queues, numbered from 0"
        raise WrongRow(message.row, self._partition, reason)

    def _writable(self, topic: str) -> tuple[MessageQueue, ...]:
        queues = self._cluster.writable_queues(topic)
        if not queues:
            raise BrokerSilent(f"of topic {topic}", ["none accepts messages for it now"], self._cluster.host)
        return queues

    def _now_writable(self, topic: str) -> tuple[MessageQueue, ...]:
        """Return the writable queues now; None if the name servers no longer have the topic."""
        try:
            return self._cluster.writable_queues(topic)
        except TopicUnknown:
            return ()

    def _close_frame(self, lane: Lane) -> None:
        """Queue the filled frame to be sent, waiting at the bound."""
        self._filling_bytes -= lane.filling.size
        lane.frames.append(lane.filling)
        lane.filling = Frame()
        if lane.under_way is None:
            self._send(lane)
        while sum(len(one.frames) for one in self._under_way) > self._limits.in_flight:
            self._wait()

    # sending

    def _send(self, lane: Lane) -> None:
        """Send the first frame of a lane, with retries until a broker has it. Raises BrokerSilent."""
        while lane.under_way is None:
            request = lane.frames[0].request(lane.queue, self._group, self._now_ms())
            try:
                connection = self._cluster.connection(self._cluster.master(lane.queue.broker_name))
                lane.under_way = connection, connection.send(request)
            except PeerSilent as error:
                self._failed(lane, error)
        self._under_way.append(lane)

    def _wait(self) -> None:
        """Wait for the answer of the oldest frame in flight; earlier answers on its connection are handled too."""
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

    def _lost(self, connection: PeerConnection, error: PeerSilent) -> None:
        """Send again all frames that were in flight on a closed connection."""
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
        """Pause and update the route; after half of the tries use a queue of another broker. Raises BrokerSilent."""
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
