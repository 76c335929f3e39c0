"""A configuration file to begin with: each key with what it means and its default."""

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
"""What most files set; a daemon's own of these."""
SET: Mapping[str, str] = {"bindAddress": "127.0.0.1"}
"""What a new file sets: nobody else reaches a server before its owner lets him."""


def template(cls: type, keys: Collection[str] | None = FIRST_KEYS) -> str:
    """A properties file; what is not set stands behind a #. `keys` None: all that have an effect."""
    return "\n".join(_lines(cls, keys))


def _lines(cls: type, keys: Collection[str] | None) -> Iterator[str]:
    for key, field in option_fields(cls).items():
        if not field.metadata["has_effect"] or (keys is not None and key not in keys and key not in SET):
            continue
        yield from textwrap.wrap(f"{field.metadata['doc']}", WIDTH, initial_indent="# ", subsequent_indent="#   ")
        yield f"{key}={SET[key]}" if key in SET else f"#{key}={_default(field)}"
        yield ""


def _default(field: attrs.Attribute[Any]) -> str:
    """As the file would have it; empty where it is unset, or depends on the machine."""
    if field.default is None or isinstance(field.default, attrs.Factory):  # type: ignore[arg-type]
        return ""
    return value_text(field.default)
