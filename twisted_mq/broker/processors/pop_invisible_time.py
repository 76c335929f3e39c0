"""Changes the time at which a popped message becomes visible again: code 200053 (CHANGE_MESSAGE_INVISIBLETIME).

Apache: ChangeInvisibleTimeProcessor. The message gets a check point of its own and is acknowledged for the old one; the
answer has the parts of the new receipt. If the store does not take the acknowledgement, the new check point is acknowledged
instead, and the change is refused.
"""

from __future__ import annotations

import attrs

from twisted_mq.broker.pop.answer_when_durable import when_durable
from twisted_mq.broker.pop.checks import check_invisible_time, check_revive_queue, existing_queue, refused_with
from twisted_mq.broker.pop.parts import PopParts
from twisted_mq.broker.pop.pop_service import PopService
from twisted_mq.protocol.bodies import AckMsg, PopCheckPoint
from twisted_mq.protocol.codes import RequestCode, ResponseCode
from twisted_mq.protocol.errors import BrokerError
from twisted_mq.protocol.headers import ChangeInvisibleTimeRequestHeader, ChangeInvisibleTimeResponseHeader
from twisted_mq.protocol.names.pop_receipt import Receipt
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.protocol.wire.header_codec import encode_header, fast_header
from twisted_mq.remoting.channel import Answer, Channel

_NOTHING = encode_header(ChangeInvisibleTimeResponseHeader(pop_time=0, invisible_time=0, revive_qid=0))


class ChangeInvisibleTimeProcessor:
    """Delays or advances a message's return. `processors` maps the request code to it."""

    def __init__(self, broker: PopParts, pop: PopService) -> None:
        self._broker = broker
        self._orders = pop.orders
        self._revive_log = pop.revive_log
        self._acknowledgements = pop.acknowledgements
        self._read = fast_header(ChangeInvisibleTimeRequestHeader)
        self.processors = {RequestCode.CHANGE_MESSAGE_INVISIBLETIME: refused_with(_NOTHING, self.change)}

    def change(self, channel: Channel, command: RemotingCommand) -> Answer:
        """Make the message visible again in `invisible_time` ms, unless it is acknowledged with the new receipt."""
        broker, header = self._broker, self._read(command)
        first, end = existing_queue(broker, channel, header)
        if not first <= header.offset < end:
            remark = f"offset[{header.offset}] is illegal, {header.topic}@{header.queue_id} has {first} to {end - 1}"
            raise BrokerError(ResponseCode.NO_MESSAGE, remark)
        receipt = Receipt.parse(header.extra_info)
        if receipt.is_order:
            return self._change_in_order(command, header, receipt)
        check_revive_queue(broker, self._revive_log, receipt.revive_queue_id)
        check_invisible_time(broker, header.invisible_time)
        now = max(
            broker.wall_ms(), receipt.pop_time + 1
        )  # otherwise it could be taken for the check point of the old receipt
        point = self._check_point(header, receipt, now)
        if not self._revive_log.put_check_point(point, receipt.revive_queue_id):
            raise BrokerError(ResponseCode.SYSTEM_ERROR, "the check point was not stored, the message is not changed")
        ack = AckMsg(
            header.offset, receipt.start_offset, header.consumer_group, header.topic, header.queue_id,
            receipt.pop_time, receipt.broker_name,
        )  # fmt: skip
        due_ms = receipt.pop_time + receipt.invisible_time
        refusal = self._acknowledgements.note(ack, receipt.revive_queue_id, due_ms, header.offset)
        if refusal is not None:
            undone = attrs.evolve(ack, start_offset=header.offset, pop_time=now)
            self._revive_log.put_ack(undone, receipt.revive_queue_id, point.revive_time)
            raise BrokerError(*refusal)
        broker.statistics.checkpoints[f"{header.topic}@{header.consumer_group}"].add(1, 0)
        return when_durable(broker, self._answer(command, receipt, now, header.invisible_time))

    @staticmethod
    def _check_point(header: ChangeInvisibleTimeRequestHeader, receipt: Receipt, now: int) -> PopCheckPoint:
        return PopCheckPoint(
            start_offset=header.offset,
            pop_time=now,
            invisible_time=header.invisible_time,
            count=1,
            queue_id=header.queue_id,
            topic=header.topic,
            consumer_group=header.consumer_group,
            offset_differences=[0],
            broker_name=receipt.broker_name,
        )

    def _change_in_order(
        self, command: RemotingCommand, header: ChangeInvisibleTimeRequestHeader, receipt: Receipt
    ) -> RemotingCommand:
        broker, topic, group, queue_id = self._broker, header.topic, header.consumer_group, header.queue_id
        committed = broker.offsets.query(group, topic, queue_id)
        if committed is not None and header.offset < committed:
            return command.answer(ext_fields=dict(_NOTHING))
        visible_ms = broker.wall_ms() + header.invisible_time
        pop_time = receipt.pop_time
        self._orders.change_visible_time(topic, group, queue_id, header.offset, pop_time, visible_ms)
        return self._answer(command, receipt, pop_time, visible_ms - pop_time)

    @staticmethod
    def _answer(command: RemotingCommand, receipt: Receipt, pop_time: int, invisible_time: int) -> RemotingCommand:
        header = ChangeInvisibleTimeResponseHeader(
            pop_time=pop_time, invisible_time=invisible_time, revive_qid=receipt.revive_queue_id
        )
        return command.answer(ext_fields=encode_header(header))
