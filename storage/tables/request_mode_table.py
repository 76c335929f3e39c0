"""config/messageRequestMode.json: the mode in which each group consumes each topic (Apache: MessageRequestModeManager).

{"messageRequestModeMap":{"TopicA":{"GroupA":{"consumerGroup":"GroupA","mode":"POP","popShareQueueNum":0,...}}}}
"""

from __future__ import annotations

from twisted_mq.protocol.bodies import MessageRequestModeSerializeWrapper, SetMessageRequestModeRequestBody
from twisted_mq.protocol.bodies.codec import decode_body
from twisted_mq.storage.tables.config_tables import ConfigTable


class MessageRequestModeTable(ConfigTable[MessageRequestModeSerializeWrapper]):
    """`modes` maps topic to group to the mode set for it."""

    def __init__(self, path: str) -> None:
        super().__init__(path, lambda data: decode_body(MessageRequestModeSerializeWrapper, data))
        self.modes: dict[str, dict[str, SetMessageRequestModeRequestBody]] = {}

    def _fill(self, body: MessageRequestModeSerializeWrapper) -> None:
        self.modes = {topic: dict(groups) for topic, groups in body.message_request_mode_map.items()}

    def _body(self) -> MessageRequestModeSerializeWrapper:
        return MessageRequestModeSerializeWrapper(self.modes)
