"""Keeps the broker's consumer groups: each heartbeat and pull looks one up, and may create it (Apache:
SubscriptionGroupManager).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping

from twisted_mq.logs import Logger
from twisted_mq.protocol.bodies import DataVersion, SubscriptionGroupConfig
from twisted_mq.protocol.codes import ResponseCode
from twisted_mq.protocol.errors import BrokerError
from twisted_mq.protocol.names.system_topics import BROKERS_GROUPS
from twisted_mq.protocol.names.validation import group_fault
from twisted_mq.remoting.budget import may_have
from twisted_mq.storage.tables.config_tables import SubscriptionGroupTable

FORBIDDEN_TO_READ = 1 << 2
"""The bit in a group's forbidden topics that forbids reading (Apache: PermName.INDEX_PERM_READ)."""

MOST_GROUPS = 50_000
"""The most groups that heartbeats and pulls create; each is an entry of a file that is written as a whole."""

_BUILT_IN = {
    "TOOLS_CONSUMER": False,
    "FILTERSRV_CONSUMER": False,
    "SELF_TEST_C_GROUP": False,
    "CID_ONS-HTTP-PROXY": True,
    "CID_ONSAPI_PULL": True,
    "CID_ONSAPI_PERMISSION": True,
    "CID_ONSAPI_OWNER": True,
    "CID_RMQ_SYS_TRANS": True,
}
"""The groups of every broker, and whether they may consume by broadcast in addition to the default."""


class SubscriptionGroupManager:
    """Groups by name; `auto_create` creates unknown ones at their first use, `save` writes the table."""

    log = Logger()

    def __init__(
        self, table: SubscriptionGroupTable, now_ms: Callable[[], int], save: Callable[[], object], *, auto_create: bool
    ) -> None:
        self._table = table
        self.groups = table.groups
        """All groups by name; other parts must not change them."""
        self._now_ms = now_ms
        self._write = save
        self.auto_create = auto_create
        self.on_delete: list[Callable[[str], object]] = []
        """Called with the name of a deleted group, whether it existed or not."""
        self._full = False
        self._made_by: dict[str, str] = {}
        """The addresses at whose request groups were created, since the broker's start."""
        self._made: Counter[str] = Counter()

    @property
    def data_version(self) -> DataVersion:
        """Return the version, which counts the changes of the table, for slaves."""
        return self._table.data_version

    def add_built_in_groups(self) -> None:
        """Create those groups of every broker that are missing."""
        missing = [name for name in _BUILT_IN if name not in self.groups]
        for name in missing:
            self.groups[name] = SubscriptionGroupConfig(group_name=name)
        if missing:
            self._save()

    def find(self, group: str, address: str = "") -> SubscriptionGroupConfig | None:
        """Return the group's configuration, created if that is allowed; None for a bad, unknown or built-in name.

        `address` is the address for whose share of the table a new group counts, see `remoting.shares`.
        """
        if group in BROKERS_GROUPS:
            return None
        config = self.groups.get(group)
        if config is None and self.auto_create and group_fault(group) is None and self._has_room(address):
            config = SubscriptionGroupConfig(group_name=group)
            self.log.info("consumer group created: group={g}", g=group)
            self._made_by[group] = address
            self._made[address] += 1
            self.update(config)
        return config

    def _has_room(self, address: str) -> bool:
        """Return True if one more group may be created on demand; log a refusal once. Administrators may create more."""
        count = len(self.groups)
        if may_have(self._made[address], count, MOST_GROUPS) if address else count < MOST_GROUPS:
            return True
        if not self._full:
            self.log.warn(
                "no more groups are created automatically for {address}, there are {n}: delete some",
                address=address or "anybody", n=count,
            )  # fmt: skip
        self._full = True
        return False

    def update(self, config: SubscriptionGroupConfig) -> None:
        """Create or alter a group and save it."""
        self.groups[config.group_name] = config
        self._save()

    def replace_all(self, configs: Mapping[str, SubscriptionGroupConfig], version: DataVersion) -> None:
        """Replace the table by another broker's, with its version."""
        self.groups.clear()
        self.groups.update(configs)
        self._table.data_version = version
        self._write()

    def delete(self, group: str) -> bool:
        """Delete a group; False if there was no such group."""
        for tell in self.on_delete:
            tell(group)
        if self.groups.pop(group, None) is None:
            return False
        self._full = False
        made_by = self._made_by.pop(group, None)
        if made_by is not None:
            self._made[made_by] -= 1
        self._table.forbidden.pop(group, None)
        self._save()
        return True

    # groups that may not read a topic, though they may read others

    def may_not_read(self, group: str, topic: str) -> bool:
        """Return True if the group is forbidden to read the topic."""
        forbidden = self._table.forbidden
        return bool(forbidden) and bool(forbidden.get(group, {}).get(topic, 0) & FORBIDDEN_TO_READ)

    def forbid_reading(self, group: str, topic: str, *, forbidden: bool) -> None:
        """Forbid or allow a group to read a topic, and save it."""
        topics = self._table.forbidden.setdefault(group, {})
        bits = topics.get(topic, 0) & ~FORBIDDEN_TO_READ | (FORBIDDEN_TO_READ if forbidden else 0)
        topics[topic] = bits
        if not bits:
            del topics[topic]
        if not topics:
            del self._table.forbidden[group]
        self._save()

    def _save(self) -> None:
        self._table.data_version = self.data_version.next_version(self._now_ms(), self.data_version.state_version)
        self._write()


def check_users_group(group: str) -> None:
    """Raise BrokerError for a group whose offsets are the broker's own progress."""
    if group in BROKERS_GROUPS:
        raise BrokerError(ResponseCode.NO_PERMISSION, f"the offsets of group[{group}] are the broker's own")
