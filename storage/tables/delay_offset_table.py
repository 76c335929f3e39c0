"""config/delayOffset.json: the progress of each delay level (Apache: ScheduleMessageService, a ConfigManager).

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
    """The file's contents, with a member that Apache's broker ignores and does not write."""

    log_offset: Int64 | None = None


class DelayOffsetTable(ConfigTable[DelayOffsets]):
    """`offsets` maps a delay level to the queue offset of the first message that still waits.

    All messages delivered from then on lie at or after `log_offset`; None if it is not known.
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
