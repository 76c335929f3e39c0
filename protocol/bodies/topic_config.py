"""Topics of a broker."""

from __future__ import annotations

import attrs
from attrs import field

from twisted_mq.protocol.bodies.static_topic import TopicQueueMappingDetail, TopicQueueMappingInfo
from twisted_mq.protocol.bodies.types import Int32, Int64, TopicFilterType
from twisted_mq.protocol.bodies.versions import DataVersion

QUEUE_TYPE = "queue.type"
"""The attribute that says which kind of consume queue a topic has (Apache: TopicAttributes)."""
BATCH_QUEUE, SIMPLE_QUEUE = "BatchCQ", "SimpleCQ"
"""Its values (Apache: CQType); a topic without it has simple queues."""
ORDER = "order"
"""The attribute of strictly ordered topics, which Apache does not have."""
ORDER_QUEUES, ORDER_TOGETHER = "queues", "together"
"""Its values: each queue moves from broker group to broker group for itself, or all move as one."""


@attrs.frozen
class TopicConfig:
    """A topic of a broker; `perm` as PermName."""

    topic_name: str = ""
    read_queue_nums: Int32 = 16
    write_queue_nums: Int32 = 16
    perm: Int32 = 6
    topic_filter_type: TopicFilterType = "SINGLE_TAG"
    topic_sys_flag: Int32 = 0
    order: bool = False
    attributes: dict[str, str] = field(factory=dict)

    @property
    def has_batch_queues(self) -> bool:
        """Return whether its queues count the messages inside records (Apache: QueueTypeUtils.isBatchCq)."""
        return (self.attributes or {}).get(QUEUE_TYPE) == BATCH_QUEUE

    @property
    def order_mode(self) -> str | None:
        """Return ORDER_QUEUES or ORDER_TOGETHER; None for a topic that is not strictly ordered."""
        return (self.attributes or {}).get(ORDER)


@attrs.frozen
class TopicConfigAndQueueMapping(TopicConfig):
    """Answer to GET_TOPIC_CONFIG."""

    mapping_detail: TopicQueueMappingDetail | None = None


@attrs.frozen
class TopicConfigSerializeWrapper:
    """The broker's file topics.json, and the registration body of brokers before V3_0_11."""

    topic_config_table: dict[str, TopicConfig] = field(factory=dict)
    data_version: DataVersion = field(factory=DataVersion)


@attrs.frozen
class TopicConfigAndMappingSerializeWrapper(TopicConfigSerializeWrapper):
    """Answer to GET_ALL_TOPIC_CONFIG."""

    topic_queue_mapping_info_map: dict[str, TopicQueueMappingInfo] = field(factory=dict)
    topic_queue_mapping_detail_map: dict[str, TopicQueueMappingDetail] = field(factory=dict)
    mapping_data_version: DataVersion = field(factory=DataVersion)


@attrs.frozen
class CreateTopicListRequestBody:
    """Request body of UPDATE_AND_CREATE_TOPIC_LIST."""

    topic_config_list: list[TopicConfig] = field(factory=list)


@attrs.frozen
class TopicRemappingDetailWrapper:
    """A plan for moving logical queues, written to a file by mqadmin. `type` is CREATE_OR_UPDATE or REMAPPING."""

    topic: str | None = None
    type: str | None = None
    epoch: Int64 = 0
    broker_config_map: dict[str, TopicConfigAndQueueMapping] = field(factory=dict)
    broker_to_map_in: list[str] = field(factory=list)
    broker_to_map_out: list[str] = field(factory=list)
