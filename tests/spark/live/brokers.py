"""Topics and messages at a broker, by the blocking connection that the Spark source has."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import attrs

from twisted_mq.protocol.bodies import MessageQueue
from twisted_mq.protocol.codes import RequestCode
from twisted_mq.protocol.flags import PermName
from twisted_mq.protocol.headers import CreateTopicRequestHeader
from twisted_mq.protocol.layouts.record_codec import iterate_messages
from twisted_mq.protocol.messages.message import Message, MessageExt
from twisted_mq.protocol.names.system_topics import AUTO_CREATE_TOPIC
from twisted_mq.protocol.text.properties import encode_properties
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.protocol.wire.header_codec import encode_header
from twisted_mq.spark.live.cluster import Access, Cluster
from twisted_mq.spark.live.connection import Dialling
from twisted_mq.spark.live.pulling import PullLimits, PullSelection, Stretch, StretchPull
from twisted_mq.spark.live.queue_offsets import next_offsets
from twisted_mq.spark.live.tasks import pulled_bodies
from twisted_mq.spark.sink.columns import Outgoing
from twisted_mq.spark.sink.frames import Frame

_numbers = itertools.count(1)
NOW_MS = 1_795_216_734_968


@attrs.frozen
class Broker:
    """A broker of a running cluster; `store` is its directory, for tests that read it."""

    name_server: str
    address: str
    name: str = "broker-a"
    store: str = ""
    dialling: Dialling = attrs.field(factory=Dialling)

    def cluster(self, **access: object) -> Cluster:
        """Without pauses between tries."""
        return Cluster(Access((self.name_server,), self.dialling, **access), sleep=lambda seconds: None)  # type: ignore[arg-type]

    def topic(self, queues: int = 4, name: str = "") -> str:
        """A new one."""
        name = name or f"Topic{next(_numbers)}"
        header = CreateTopicRequestHeader(
            topic=name,
            default_topic=AUTO_CREATE_TOPIC,
            read_queue_nums=queues,
            write_queue_nums=queues,
            perm=PermName.PERM_READ | PermName.PERM_WRITE,
            topic_filter_type="SINGLE_TAG",
            topic_sys_flag=0,
            order=False,
        )
        cluster = self.cluster()
        request = RemotingCommand.request(RequestCode.UPDATE_AND_CREATE_TOPIC, encode_header(header))
        assert cluster.connection(self.address).call(request).code == 0
        cluster.close()
        return name

    def send(self, topic: str, messages: Sequence[Message | bytes], queue_id: int = 0) -> None:
        """Send messages one after another, 100 in a batch."""
        cluster = self.cluster()
        connection = cluster.connection(self.address)
        for begin in range(0, len(messages), 100):
            frame = Frame()
            for message in messages[begin : begin + 100]:
                ready = message if isinstance(message, Message) else Message(topic, message)
                properties = encode_properties(ready.properties).encode()
                frame.add(Outgoing(0, topic, ready.body, properties, None, False))
            answer = connection.call(frame.request(MessageQueue(topic, self.name, queue_id), "TESTS", NOW_MS))
            assert answer.code == 0, answer.remark
        cluster.close()

    def read(self, topic: str) -> list[list[MessageExt]]:
        """All messages of each queue."""
        cluster = self.cluster()
        found = []
        for queue, end in next_offsets(cluster, cluster.readable_queues(topic)).items():
            pull = StretchPull(Stretch(queue, 0, end), "TESTS", PullSelection(), PullLimits())
            found.append([message for body in pulled_bodies(cluster, pull) for message in iterate_messages(body)])
        cluster.close()
        return found
