"""config/topicQueueMapping.json: the logical queues of static topics on this broker (Apache: TopicQueueMappingManager).

{"dataVersion":{...},"topicQueueMappingInfoMap":{"TopicA":{"bname":"broker-a","epoch":...,"hostedQueues":{0:[{...}]},...}}}
"""

from __future__ import annotations

from twisted_mq.protocol.bodies import TopicQueueMappingDetail, TopicQueueMappingSerializeWrapper
from twisted_mq.protocol.bodies.codec import decode_body
from twisted_mq.storage.tables.config_tables import ConfigTable


class TopicMappingTable(ConfigTable[TopicQueueMappingSerializeWrapper]):
    """`mappings` maps a topic to the mapping that this broker was given."""

    def __init__(self, path: str) -> None:
        super().__init__(path, lambda data: decode_body(TopicQueueMappingSerializeWrapper, data))
        self.mappings: dict[str, TopicQueueMappingDetail] = {}

    def _fill(self, body: TopicQueueMappingSerializeWrapper) -> None:
        self.mappings = dict(body.topic_queue_mapping_info_map)
        self.data_version = body.data_version

    def _body(self) -> TopicQueueMappingSerializeWrapper:
        return TopicQueueMappingSerializeWrapper(dict(self.mappings), self.data_version)
