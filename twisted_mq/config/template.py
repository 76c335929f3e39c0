"""Writes a configuration file to start with: each key with its meaning and its default."""

from __future__ import annotations

import textwrap
from collections.abc import Collection, Iterator, Mapping
from typing import Any

import attrs

from twisted_mq.config.options import option_fields
from twisted_mq.config.values import value_text

WIDTH = 100

FIRST_KEYS = (
    "brokerName", "brokerClusterName", "brokerId", "brokerRole", "listenPort", "brokerIP1", "namesrvAddr",
    "storePathRootDir", "storePathCommitLog", "mappedFileSizeCommitLog", "flushDiskType", "fileReservedTime", "deleteWhen",
    "diskMaxUsedSpaceRatio", "autoCreateTopicEnable", "autoCreateSubscriptionGroup", "defaultTopicQueueNums",
    "maxMessageSize", "messageDelayLevel", "inSyncReplicas", "haSharedSecret", "authenticationEnabled",
    "authorizationEnabled", "tls.server.mode", "tls.server.certPath", "tls.server.keyPath", "metricsExporterType",
    "kvConfigPath", "configStorePath", "authConfigPath",
)  # fmt: skip
"""Keys that most files set; a daemon uses those that it has."""
SET: Mapping[str, str] = {"bindAddress": "127.0.0.1"}
"""Values that a new file sets: only this machine can reach a server until its owner changes that."""


def template(cls: type, keys: Collection[str] | None = FIRST_KEYS) -> str:
    """Return a properties file; unset keys are commented out. `keys` None: all keys that have an effect."""
    return "\n".join(_lines(cls, keys))


def _lines(cls: type, keys: Collection[str] | None) -> Iterator[str]:
    for key, field in option_fields(cls).items():
        if not field.metadata["has_effect"] or (keys is not None and key not in keys and key not in SET):
            continue
        yield from textwrap.wrap(f"{field.metadata['doc']}", WIDTH, initial_indent="# ", subsequent_indent="#   ")
        yield f"{key}={SET[key]}" if key in SET else f"#{key}={_default(field)}"
        yield ""


def _default(field: attrs.Attribute[Any]) -> str:
    """Return the default as the file would have it; empty if it is unset, or depends on the machine."""
    if field.default is None or isinstance(field.default, attrs.Factory):  # type: ignore[arg-type]
        return ""
    return value_text(field.default)
