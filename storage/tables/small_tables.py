"""The broker's smaller tables in `config/`: request modes, half messages, logical queues, delay levels, users.

messageRequestMode.json  {"messageRequestModeMap":{"TopicA":{"GroupA":{"consumerGroup":"GroupA","mode":"POP",...}}}}
transactionMetrics       {"dataVersion":{...},"transactionCount":{"CapTx":{"count":0,"timeStamp":1795216809723}}}
topicQueueMapping.json   {"dataVersion":{...},"topicQueueMappingInfoMap":{"TopicA":{"bname":"broker-a","epoch":...,
                         "hostedQueues":{0:[{...}]},...}}}
delayOffset.json         {"dataVersion":{...},"logOffset":5740,"offsetTable":{1:20,2:1,9:0}}
access.json              {"acls":{"User:ada":{"policies":[{"entries":[{"actions":["Pub"],"decision":"Allow",
                         "resource":"Topic:Orders"}],"policyType":"Custom"}],"subject":"User:ada"}},
                         "users":{"ada":{"password":"...","userStatus":"enable","userType":"Normal","username":"ada"}}}
"""

from __future__ import annotations

import attrs

from twisted_mq.protocol.bodies import (
    AccessWrapper,
    AclInfo,
    DataVersion,
    DelayOffsetSerializeWrapper,
    MessageRequestModeSerializeWrapper,
    SetMessageRequestModeRequestBody,
    TopicQueueMappingDetail,
    TopicQueueMappingSerializeWrapper,
    TransactionMetricsSerializeWrapper,
    UserInfo,
)
from twisted_mq.protocol.bodies.codec import decode_body
from twisted_mq.protocol.bodies.metrics import TransactionMetric
from twisted_mq.protocol.bodies.types import Int64
from twisted_mq.storage.files.json_file import OWNER_ONLY
from twisted_mq.storage.tables.config_tables import ConfigTable


class MessageRequestModeTable(ConfigTable[MessageRequestModeSerializeWrapper]):
    """The mode in which each group consumes each topic (Apache: MessageRequestModeManager): `modes` maps topic to group to it."""

    def __init__(self, path: str) -> None:
        super().__init__(path, lambda data: decode_body(MessageRequestModeSerializeWrapper, data))
        self.modes: dict[str, dict[str, SetMessageRequestModeRequestBody]] = {}

    def _fill(self, body: MessageRequestModeSerializeWrapper) -> None:
        self.modes = {topic: dict(groups) for topic, groups in body.message_request_mode_map.items()}

    def _body(self) -> MessageRequestModeSerializeWrapper:
        return MessageRequestModeSerializeWrapper(self.modes)


class TransactionMetricsTable(ConfigTable[TransactionMetricsSerializeWrapper]):
    """The number of undecided half messages (Apache: TransactionMetrics).

    `counts` maps a real topic to it and the time of its last change; the owner changes it and saves.
    """

    def __init__(self, path: str) -> None:
        super().__init__(path, lambda data: decode_body(TransactionMetricsSerializeWrapper, data))
        self.counts: dict[str, TransactionMetric] = {}

    def _fill(self, body: TransactionMetricsSerializeWrapper) -> None:
        self.counts = dict(body.transaction_count)
        self.data_version = body.data_version or DataVersion()

    def _body(self) -> TransactionMetricsSerializeWrapper:
        return TransactionMetricsSerializeWrapper(self.counts, self.data_version)


class TopicMappingTable(ConfigTable[TopicQueueMappingSerializeWrapper]):
    """The logical queues of static topics on this broker (Apache: TopicQueueMappingManager).

    `mappings` maps a topic to the mapping that this broker was given.
    """

    def __init__(self, path: str) -> None:
        super().__init__(path, lambda data: decode_body(TopicQueueMappingSerializeWrapper, data))
        self.mappings: dict[str, TopicQueueMappingDetail] = {}

    def _fill(self, body: TopicQueueMappingSerializeWrapper) -> None:
        self.mappings = dict(body.topic_queue_mapping_info_map)
        self.data_version = body.data_version

    def _body(self) -> TopicQueueMappingSerializeWrapper:
        return TopicQueueMappingSerializeWrapper(dict(self.mappings), self.data_version)


@attrs.frozen
class DelayOffsets(DelayOffsetSerializeWrapper):
    """The file's contents, with a member that Apache's broker ignores and does not write."""

    log_offset: Int64 | None = None


class DelayOffsetTable(ConfigTable[DelayOffsets]):
    """The progress of each delay level (Apache: ScheduleMessageService, a ConfigManager).

    `offsets` maps a delay level to the queue offset of the first message that still waits.

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


class AccessTable(ConfigTable[AccessWrapper]):
    """Users and their rights: `users` by name, `acls` by subject (`User:ada`). Apache keeps them in RocksDB.

    Passwords are stored in plain text, because signatures are computed from them: only the file's owner can read it.
    """

    def __init__(self, path: str) -> None:
        super().__init__(path, lambda data: decode_body(AccessWrapper, data), OWNER_ONLY)
        self.users: dict[str, UserInfo] = {}
        self.acls: dict[str, AclInfo] = {}

    def _fill(self, body: AccessWrapper) -> None:
        self.users, self.acls = dict(body.users), dict(body.acls)

    def _body(self) -> AccessWrapper:
        return AccessWrapper(dict(self.users), dict(self.acls))
