"""Knows every property that a configuration class of Apache RocketMQ 5.3.3 takes: type, default, classes.

The facts are in known_keys.json, which is read only when a file names a key that the daemon itself does not use.
"""

from __future__ import annotations

import functools
from importlib import resources

import msgspec

from twisted_mq.config.values import PARSERS, Value


class KnownKey(msgspec.Struct, frozen=True):
    """A property as some of Apache's classes have it; `default` is null if it depends on the machine."""

    type: str
    default: Value
    classes: list[str]
    environment: str | None = None


class _File(msgspec.Struct):
    source: str
    startup: dict[str, dict[str, Value]]
    keys: dict[str, list[KnownKey]]


@functools.cache
def _file() -> _File:
    return msgspec.json.decode(
        resources.files("twisted_mq.config").joinpath("known_keys.json").read_bytes(), type=_File
    )


def known_keys() -> dict[str, list[KnownKey]]:
    """Return key -> its forms; several if classes differ in type or default."""
    return _file().keys


def startup_defaults(daemon: str) -> dict[str, Value]:
    """Return the values that Apache's start-up code ("broker", "namesrv") sets before it reads the file."""
    return _file().startup[daemon]


def fault_of_value(key: str, value: str) -> str | None:
    """Return why no RocketMQ class accepts this value for a known key; None if one does."""
    faults = []
    for form in known_keys()[key]:
        try:
            PARSERS[form.type](value)
        except ValueError as error:
            faults.append(str(error))
        else:
            return None
    return faults[0]


OLD_NAMES = {
    "mapedFileSizeCommitLog": "mappedFileSizeCommitLog",
    "mapedFileSizeConsumeQueue": "mappedFileSizeConsumeQueue",
    "haSlaveFallbehindMax": "haMaxGapNotInSync",
}
"""Names of 4.x (MessageStoreConfig of 4.2.0 and 4.9.4) -> names of 5.3.3."""

NEVER_KEYS = {
    "storePathConsumeQueue": "the consume queues are in storePathRootDir/consumequeue",
    "storePathIndex": "the index is in storePathRootDir/index",
    "storeCheckpoint": "the checkpoint is in storePathRootDir",
    "abortFile": "the abort file is in storePathRootDir",
    "namesrv.addr": "write namesrvAddr",
    "rocketmq.namesrv.addr": "write namesrvAddr",
}
"""Keys in many published files that no RocketMQ reads -> what is true, or what to write."""


def unknown_reason(key: str, own: list[str]) -> str:
    """Return what to report about a key that no class has: the fact behind it, or the nearest key."""
    hint = NEVER_KEYS.get(key)
    if hint is None:
        similar = similar_key(key, own)
        hint = f"did you mean {similar}?" if similar else None
    return "unknown key" + (f", {hint}" if hint else "")


def similar_key(key: str, own: list[str]) -> str | None:
    """Return the known key that was probably meant; those that the daemon uses come first."""
    import difflib

    for candidates in (own, list(known_keys())):
        found = difflib.get_close_matches(key, candidates, n=1, cutoff=0.8)
        if found:
            return found[0]
    return None
