"""A broker in memory whose messages are popped: one topic T of four queues, one group G."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.support.broker import BrokerInMemory, Peer
from twisted_mq.protocol.bodies import BatchAck, BatchAckMessageRequestBody, encode_body
from twisted_mq.protocol.codes import RequestCode
from twisted_mq.protocol.layouts.record_codec import decode_message, iterate_messages
from twisted_mq.protocol.messages.message import MessageExt
from twisted_mq.protocol.names.pop_receipt import Receipt, parse_message_offsets, parse_start_offsets
from twisted_mq.protocol.names.pop_topics import retry_mark
from twisted_mq.protocol.text.properties import encode_properties
from twisted_mq.protocol.wire.command import RemotingCommand

REVIVE_TOPIC = "rmq_sys_REVIVE_LOG_CapCluster"
BROKER_NAME = "broker-cap"


class PopDesk:
    """Sends, pops and acknowledges through frames; `pass_time` lets timers and revivals run."""

    def __init__(
        self, root: Path, restarted: PopDesk | None = None, tables: Mapping[str, Any] | None = None, **options: Any
    ) -> None:
        self.root = root
        known = {"revive_queue_num": 1, "pop_from_retry_probability": 0, "enable_property_filter": True, **options}
        self.broker = BrokerInMemory(
            store_path_root_dir=str(root), restarted=restarted.broker if restarted else None, tables=tables, **known
        )
        self.controller = self.broker.controller
        self.controller.waiting.start()
        self.controller.pop.start()
        self.peer = self.broker.connect()

    def stop(self) -> None:
        self.controller.waiting.stop()
        self.controller.pop.stop()
        self.controller.dispatch()
        self.controller.waiting.save()

    @property
    def now(self) -> int:
        return self.broker.now_ms()

    def pass_time(self, seconds: float) -> None:
        """In steps, so that what is called later is called in its time."""
        for _ in range(int(seconds * 10)):
            self.broker.clock.advance(0.1)

    def send(self, *bodies: str, topic: str = "T", queue: int = 0, **properties: str) -> None:
        for body in bodies:
            fields = {"a": "P", "b": topic, "c": "TBW102", "d": "4", "e": str(queue), "f": "0", "g": str(self.now),
                      "h": "0", "j": "0", "k": "false", "m": "false",
                      "i": encode_properties({"UNIQ_KEY": f"K{body}", **properties})}  # fmt: skip
            assert self.peer.ask(RequestCode.SEND_MESSAGE_V2, fields, body.encode()).code == 0

    def pop_fields(self, **more: Any) -> dict[str, str]:
        fields = {"consumerGroup": "G", "topic": "T", "queueId": "-1", "maxMsgNums": "32", "invisibleTime": "10000",
                  "pollTime": "0", "bornTime": str(self.now), "initMode": "0", "order": "false"}  # fmt: skip
        return fields | {name: str(value) for name, value in more.items()}

    def pop(self, **more: Any) -> RemotingCommand:
        return self.peer.ask(RequestCode.POP_MESSAGE, self.pop_fields(**more))

    def hold_pop(self, peer: Peer, **more: Any) -> None:
        """A pop that waits."""
        peer.send(RemotingCommand(RequestCode.POP_MESSAGE, ext_fields=self.pop_fields(pollTime=15000) | _text(more)))
        assert peer.received() == []

    def ack(self, message: MessageExt, **more: Any) -> RemotingCommand:
        return self.peer.ask(RequestCode.ACK_MESSAGE, self.ack_fields(message) | _text(more))

    def change(self, message: MessageExt, invisible_time: int, **more: Any) -> RemotingCommand:
        fields = {**self.ack_fields(message), "invisibleTime": str(invisible_time)}
        return self.peer.ask(RequestCode.CHANGE_MESSAGE_INVISIBLETIME, fields | _text(more))

    @staticmethod
    def ack_fields(message: MessageExt) -> dict[str, str]:
        """As a client makes them: the topic is the retry topic where the receipt says so."""
        receipt = Receipt.parse(message.properties["POP_CK"])
        topics = {"0": "T", "1": "%RETRY%G_T", "2": "%RETRY%G+T"}
        return {"consumerGroup": "G", "topic": topics[receipt.mark], "queueId": str(receipt.queue_id),
                "offset": str(receipt.queue_offset), "extraInfo": receipt.encode()}  # fmt: skip

    def ack_batch(self, *acks: BatchAck) -> RemotingCommand:
        body = BatchAckMessageRequestBody(BROKER_NAME, list(acks))
        return self.peer.ask(RequestCode.BATCH_ACK_MESSAGE, body=encode_body(body))

    def stored(self, topic: str = REVIVE_TOPIC, queue: int = 0) -> list[MessageExt]:
        """All messages of a queue."""
        found: list[MessageExt] = []
        while records := self.broker.store.get_message(topic, queue, len(found), 32, 1 << 20, None).records:
            found += [decode_message(record) for record in records]
        return found

    def committed(self, queue: int = 0, topic: str = "T") -> int | None:
        return self.controller.offsets.query("G", topic, queue)


def _text(fields: dict[str, Any]) -> dict[str, str]:
    return {name: str(value) for name, value in fields.items()}


def messages(answer: RemotingCommand) -> list[MessageExt]:
    """The popped messages with their receipts, put together as Apache's client does (MQClientAPIImpl.processPopResponse)."""
    fields = answer.ext_fields
    starts = parse_start_offsets(fields["startOffsetInfo"])
    offsets = parse_message_offsets(fields["msgOffsetInfo"])
    popped = list(iterate_messages(answer.body)) if answer.body else []
    for message in popped:
        if "POP_CK" not in message.properties:
            place = retry_mark(message.topic), message.queue_id
            assert message.queue_offset in offsets[place]
            receipt = Receipt(
                starts[place], int(fields["popTime"]), int(fields["invisibleTime"]), int(fields["reviveQid"]),
                place[0], BROKER_NAME, message.queue_id, message.queue_offset,
            )  # fmt: skip
            message.properties["POP_CK"] = receipt.encode()
    return popped


def bodies(answer: RemotingCommand) -> list[str]:
    """The bodies of popped messages."""
    return [message.body.decode() for message in messages(answer)]


def bits(*indexes: int) -> str:
    """A BatchAck's bit set."""
    number = sum(1 << index for index in indexes)
    return base64.b64encode(number.to_bytes(number.bit_length() // 8 + 1, "little")).decode()
