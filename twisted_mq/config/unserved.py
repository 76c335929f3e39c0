"""Lists Apache's keys that promise safety and are not served here: a daemon does not start if one is on.

Users who rely on them would otherwise find out when it is too late. `--ignore-unsupported` starts all the same.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

import attrs

from twisted_mq.config.errors import ConfigError
from twisted_mq.config.properties import Entry

IGNORE = "--ignore-unsupported"


@attrs.frozen
class Promise:
    """A promise that would not be kept, what to do instead, and the values that ask for nothing (in lower case).

    With `mark`, only values that contain it ask for the promise; the key itself may be served.
    """

    broken: str
    instead: str
    off: frozenset[str] = frozenset({"", "false"})
    mark: str = ""

    def is_asked_for(self, value: str, *, served: bool) -> bool:
        """Return True if a value asks for something that is not kept."""
        if self.mark:
            return self.mark in value
        return not served and value.strip().lower() not in self.off


_FAILOVER = Promise(
    "no other broker would take over from a lost master",
    "run a master and slaves (brokerRole=SYNC_MASTER and SLAVE, inSyncReplicas)",
)
_PLACE = Promise("messages and settings would lie in other files", "convert it to a store in files first (mq migrate)")

PROMISES: dict[str, Promise] = {
    **dict.fromkeys(
        (
            "enableDLegerCommitLog",
            "enableControllerMode",
            "enableControllerInNamesrv",
            "allAckInSyncStateSet",
            "duplicationEnable",
        ),
        _FAILOVER,
    ),
    "lockInStrictMode": Promise(
        "a queue's lock would be one broker's, and two consumers could have it while a master returns",
        "use ordered topics (orderCoordinator) where order has to survive that",
    ),
    "storeType": attrs.evolve(_PLACE, off=frozenset({"", "default"})),
    "configManagerVersion": attrs.evolve(_PLACE, off=frozenset({"", "v1"})),
    "readOnlyCommitLogStorePaths": attrs.evolve(
        _PLACE,
        broken="messages in these directories would not be found",
        instead="move their files to storePathCommitLog",
    ),
    "storePathCommitLog": Promise(
        "messages would be in one directory of this name, not in several",
        "use one directory (a volume over several disks)",
        mark=",",
    ),
    "messageStorePlugIn": Promise(
        "old files would be deleted without another copy (fileReservedTime)", "raise fileReservedTime"
    ),
    "forceVerifyPropCRC": Promise("properties would not be checked", "use the check of bodies (checkCRCOnRecover)"),
}

TLS_SETTINGS = frozenset({"tls.ciphers", "tls.protocols"})
"""Apache reads them from system properties (TlsSystemConfig of later versions), not from a daemon's file."""


def broken_promises(entries: Iterable[Entry], served: Collection[str]) -> list[Entry]:
    """Return the entries that are on and not served; the last entry of a key counts."""
    given = {entry.key: entry for entry in entries if entry.key in PROMISES}
    return [entry for key, entry in given.items() if PROMISES[key].is_asked_for(entry.value, served=key in served)]


def refusal(path: str | None, broken: list[Entry]) -> ConfigError:
    """Return the error of the first entry, which names the others."""
    first, promise = broken[0], PROMISES[broken[0].key]
    others = ", ".join(f"{entry.key}={entry.value}" for entry in broken[1:])
    also = f"; nor are {others}" if others else ""
    reason = f"is not supported here: {promise.broken}. Remove it and {promise.instead}, or start with {IGNORE}{also}"
    return ConfigError(reason, path=path if first.line else None, line=first.line, key=first.key, value=first.value)
