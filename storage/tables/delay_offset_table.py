"""config/delayOffset.json: how far each delay level was delivered (Apache: ScheduleMessageService, a ConfigManager).

{"dataVersion":{"counter":7,"stateVersion":0,"timestamp":1795216985322},"offsetTable":{1:20,2:1,9:0}}
"""

from __future__ import annotations

from twisted_mq.protocol.bodies import DataVersion, DelayOffsetSerializeWrapper
from twisted_mq.protocol.bodies.codec import decode_body
from twisted_mq.storage.tables.config_tables import ConfigTable


class DelayOffsetTable(ConfigTable[DelayOffsetSerializeWrapper]):
    """`offsets` is delay level to the queue offset of the first message that still waits."""

    def __init__(self, path: str) -> None:
        super().__init__(path, lambda data: decode_body(DelayOffsetSerializeWrapper, data))
        self.offsets: dict[int, int] = {}

    def _fill(self, body: DelayOffsetSerializeWrapper) -> None:
        self.offsets = dict(body.offset_table)
        self.data_version = body.data_version or DataVersion()

    def _body(self) -> DelayOffsetSerializeWrapper:
        return DelayOffsetSerializeWrapper(self.offsets, self.data_version)
