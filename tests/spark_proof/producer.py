"""Messages at a steady pace from a thread, one at a time, each sent once: acknowledged ones, and those with an unknown
outcome."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import attrs

from twisted_mq.protocol.bodies import MessageQueue
from twisted_mq.protocol.codes import ResponseCode
from twisted_mq.protocol.headers import SendMessageResponseHeader
from twisted_mq.protocol.text.properties import encode_properties
from twisted_mq.protocol.wire.header_codec import decode_header
from twisted_mq.spark.live.cluster import Access, Cluster
from twisted_mq.spark.live.connection import Dialling
from twisted_mq.spark.live.errors import PeerSilent
from twisted_mq.spark.sink.columns import Outgoing
from twisted_mq.spark.sink.frames import Frame

Place = tuple[int, int]
"""Queue and offset."""
PAUSE_SECONDS = 0.05
TIMEOUT_SECONDS = 5.0


@attrs.define
class Producer:
    """`sent_ms` has when each acknowledged message was sent, by its place; `text` makes the body of a number."""

    name_server: str
    broker: str
    topic: str
    queues: int
    per_second: float
    text: Callable[[int], str] = str
    acknowledged: dict[Place, str] = attrs.field(factory=dict)
    sent_ms: dict[Place, float] = attrs.field(factory=dict)
    unknown: set[str] = attrs.field(factory=set)
    _stopped: threading.Event = attrs.field(factory=threading.Event)
    _thread: threading.Thread | None = None

    def start(self) -> None:
        self._thread = threading.Thread(target=self._run, name="producer")
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        cluster = Cluster(Access((self.name_server,), Dialling(TIMEOUT_SECONDS)))
        began, number = time.monotonic(), 0
        while not self._stopped.wait(max(0.0, began + number / self.per_second - time.monotonic())):
            try:
                self._send(cluster, number)
            except PeerSilent:
                # due times of a time away are made up for slowly: nothing is sent in a burst
                time.sleep(PAUSE_SECONDS)
                began = time.monotonic() - number / self.per_second
            number += 1
        cluster.close()

    def _send(self, cluster: Cluster, number: int) -> None:
        """Raises PeerSilent."""
        text, queue = self.text(number), MessageQueue(self.topic, "broker-a", number % self.queues)
        frame = Frame()
        properties = encode_properties({"UNIQ_KEY": text}).encode()
        frame.add(Outgoing(number, self.topic, text.encode(), properties, None, True))
        began = time.time() * 1000
        connection = cluster.connection(self.broker)
        self.unknown.add(text)
        answer = connection.call(frame.request(queue, "PROOF", round(began)))
        if answer.code == ResponseCode.SUCCESS:
            found = decode_header(SendMessageResponseHeader, answer)
            self.unknown.remove(text)
            self.acknowledged[found.queue_id, found.queue_offset] = text
            self.sent_ms[found.queue_id, found.queue_offset] = began
