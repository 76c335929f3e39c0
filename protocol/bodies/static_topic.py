"""Static topics: how logical queues lie on brokers."""

from __future__ import annotations

import attrs
from attrs import field

from twisted_mq.protocol.bodies.types import Int32, Int64
from twisted_mq.protocol.bodies.versions import DataVersion


@attrs.frozen
class LogicQueueMappingItem:
    """A piece of a logical queue: its offsets from `logic_offset` on lie in this queue of broker `bname`. -1 means
    open.
    """

    gen: Int32 = 0
    queue_id: Int32 = 0
    bname: str | None = None
    logic_offset: Int64 = 0
    start_offset: Int64 = 0
    end_offset: Int64 = -1
    time_of_start: Int64 = -1
    time_of_end: Int64 = -1


@attrs.frozen
class TopicQueueMappingInfo:
    """The logical queues of a static topic that a broker holds now: `curr_id_map` is global id to physical queue id."""

    topic: str = ""
    scope: str = "__global__"
    total_queues: Int32 = 0
    bname: str | None = None
    epoch: Int64 = 0
    dirty: bool = False
    curr_id_map: dict[Int32, Int32] = field(factory=dict)


@attrs.frozen
class TopicQueueMappingDetail(TopicQueueMappingInfo):
    """Request body of UPDATE_AND_CREATE_STATIC_TOPIC. `hosted_queues`: global id of a logical queue to the pieces of
    it.
    """

    hosted_queues: dict[Int32, list[LogicQueueMappingItem]] = field(factory=dict)


@attrs.frozen
class TopicQueueMappingOne:
    """A logical queue of a static topic."""

    topic: str | None = None
    bname: str | None = None
    global_id: Int32 | None = None
    items: list[LogicQueueMappingItem] | None = None
    mapping_detail: TopicQueueMappingDetail | None = None


@attrs.frozen
class TopicQueueMappingSerializeWrapper:
    """The broker's file topicQueueMapping.json."""

    topic_queue_mapping_info_map: dict[str, TopicQueueMappingDetail] = field(factory=dict)
    data_version: DataVersion = field(factory=DataVersion)
