"""Consumer groups of a broker."""

from __future__ import annotations

import attrs
from attrs import field

from twisted_mq.protocol.bodies.types import GroupRetryPolicyType, Int32, Int64
from twisted_mq.protocol.bodies.versions import DataVersion

DEFAULT_DELAYS_MS = (
    *(1_000, 5_000, 10_000, 30_000),
    *(60_000, 120_000, 180_000, 240_000, 300_000, 360_000, 420_000, 480_000, 540_000, 600_000),
    *(1_200_000, 1_800_000, 3_600_000, 7_200_000),
)
"""The delay levels 1s to 2h, as the fresh CustomizedRetryPolicy has them."""


@attrs.frozen
class SimpleSubscriptionData:
    """A subscription that a group is bound to."""

    topic: str = ""
    expression_type: str | None = None
    expression: str | None = None
    version: Int64 = 0


@attrs.frozen
class ExponentialRetryPolicy:
    """Delays of `initial` times `multiplier` to the power of the retries, at most `max` (ms)."""

    initial: Int64 = 5000
    max: Int64 = 7200000
    multiplier: Int64 = 2


@attrs.frozen
class CustomizedRetryPolicy:
    """The delay in ms of each retry; the last one for all that follow."""

    next: list[Int64] = field(factory=lambda: list(DEFAULT_DELAYS_MS))


@attrs.frozen
class GroupRetryPolicy:
    """Return how long a failed message waits; without a policy of its type, the customized one with its fresh values."""

    type: GroupRetryPolicyType = "CUSTOMIZED"
    exponential_retry_policy: ExponentialRetryPolicy | None = None
    customized_retry_policy: CustomizedRetryPolicy | None = None


@attrs.frozen
class SubscriptionGroupConfig:
    """Request body of UPDATE_AND_CREATE_SUBSCRIPTIONGROUP. Answer to GET_SUBSCRIPTIONGROUP_CONFIG."""

    group_name: str = ""
    consume_enable: bool = True
    consume_from_min_enable: bool = True
    consume_broadcast_enable: bool = True
    consume_message_orderly: bool = False
    retry_queue_nums: Int32 = 1
    retry_max_times: Int32 = 16
    group_retry_policy: GroupRetryPolicy = field(factory=GroupRetryPolicy)
    broker_id: Int64 = 0
    which_broker_when_consume_slowly: Int64 = 1
    notify_consumer_ids_changed_enable: bool = True
    group_sys_flag: Int32 = 0
    consume_timeout_minute: Int32 = 15
    subscription_data_set: list[SimpleSubscriptionData] | None = None
    attributes: dict[str, str] = field(factory=dict)


@attrs.frozen
class SubscriptionGroupWrapper:
    """Answer to GET_ALL_SUBSCRIPTIONGROUP_CONFIG. Also the broker's file subscriptionGroup.json. `forbidden_table`:
    group to topic to what is forbidden (bit 0: reading).
    """

    subscription_group_table: dict[str, SubscriptionGroupConfig] = field(factory=dict)
    data_version: DataVersion = field(factory=DataVersion)
    forbidden_table: dict[str, dict[str, Int32]] | None = None


@attrs.frozen
class SubscriptionGroupList:
    """Request body of UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST."""

    group_config_list: list[SubscriptionGroupConfig] = field(factory=list)


@attrs.frozen
class GroupForbidden:
    """Answer to UPDATE_AND_GET_GROUP_FORBIDDEN."""

    topic: str | None = None
    group: str | None = None
    readable: bool | None = None
