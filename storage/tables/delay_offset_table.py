"""config/delayOffset.json: how far each delay level was delivered (Apache: ScheduleMessageService, a ConfigManager).

{"dataVersion":{"counter":7,"stateVersion":0,"timestamp":1795216985322},"logOffset":5740,"offsetTable":{1:20,2:1,9:0}}
"""

from __future__ import annotations

import attrs

from twisted_mq.protocol.bodies import DataVersion, DelayOffsetSerializeWrapper
from twisted_mq.protocol.bodies.codec import decode_body
from twisted_mq.protocol.bodies.types import Int64
from twisted_mq.storage.tables.config_tables import ConfigTable


@attrs.frozen
class DelayOffsets(DelayOffsetSerializeWrapper):
    """The file: with a member that Apache's broker passes over, and does not write."""

    log_offset: Int64 | None = None


class DelayOffsetTable(ConfigTable[DelayOffsets]):
    """`offsets` is delay level to the queue offset of the first message that still waits.

    At and behind `log_offset` lies all that was delivered from there on; None where that is not known.
    """

    def __init__(self, path: str) -> None:
        super().__init__(path, lambda data: decode_body(DelayOffsets, data))
        self.offsets: dict[int, int] = {}
        self.log_offset: int | None = 0

    def _fill(self, body: DelayOffsets) -> None:
        self.offsets = dict(body.offset_table)
        self.log_offset = body.log_offset
        self.data_version = body.data_version or DataVersion()

    def _body(self) -> DelayOffsets:
        return DelayOffsets(self.offsets, self.data_version, self.log_offset)
