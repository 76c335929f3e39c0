"""The broker's tables in `config/`: topics.json, subscriptionGroup.json, consumerOffset.json.

    {"dataVersion":{"counter":15,"stateVersion":0,"timestamp":1795216968628},"topicConfigTable":{"TopicA":{...}}}
    {"dataVersion":{...},"forbiddenTable":{},"subscriptionGroupTable":{"GroupA":{...}}}
    {"dataVersion":{...},"groupTopicMap":{"GroupA":["TopicA"]},"offsetTable":{"TopicA@GroupA":{0:8,1:8}}}

Written as Apache's writer does: one member a line, tabs, integer keys bare. Read in that form and as standard JSON.
Tables are plain dicts, the same for the table's life, that their owner changes and then saves; they know no clock.
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Generic, TypeVar

from twisted_mq.protocol.bodies import (
    ConsumerOffsetSerializeWrapper,
    DataVersion,
    SubscriptionGroupConfig,
    SubscriptionGroupWrapper,
    TopicConfig,
    TopicConfigSerializeWrapper,
)
from twisted_mq.protocol.bodies.codec import decode_body, to_value
from twisted_mq.protocol.text.fastjson import dumps
from twisted_mq.storage.files.json_file import JsonFile, LoadAction
from twisted_mq.storage.tables.kept_rows import KeptRows

TOPIC_GROUP_SEPARATOR = "@"

_ROW = b"\n\t\t"
"""The beginning of a row's lines, without the tab of their own."""

Body = TypeVar("Body")


class ConfigTable(abc.ABC, Generic[Body]):
    """A table in one file. `load` fills it, `save` writes it if it changed. A body shares no mutable data with the table."""

    def __init__(self, path: str, decode: Callable[[bytes], Body], mode: int = 0o666) -> None:
        self.path = path
        self.data_version = DataVersion()
        self._file = JsonFile(path, decode, mode)

    def load(self) -> list[LoadAction]:
        """Read the file, or its backup; return and log the problems. Raises OSError."""
        body, actions = self._file.load()
        if body is not None:
            self._fill(body)
        return actions

    def save(self) -> bool:
        """Write the file if it would differ. Raises OSError; then the file is unchanged."""
        return self._file.save(self._text(self._body()))

    def save_with_backup(self) -> None:
        """Write the file and its backup, because the earlier contents of both are wrong. Raises OSError."""
        self.save()
        self._file.back_up()

    def snapshot(self) -> Callable[[], bool]:
        """Return a writer of the table as it is now, for any thread but not two at a time. Raises OSError as `save`."""
        body = self._body()
        return lambda: self._file.save(self._text(body))

    def _text(self, body: Body) -> bytes:
        """Return the file's text."""
        return pretty(to_value(body))

    @abc.abstractmethod
    def _fill(self, body: Body) -> None:
        """Take over the values that were read."""

    @abc.abstractmethod
    def _body(self) -> Body:
        """Return the body to write."""


def _kept_rows() -> KeptRows:
    return KeptRows(lambda name, row: dumps(name) + b":" + _pretty(to_value(row), _ROW))


def _with_rows(members: Mapping[str, object], name: str, texts: Collection[bytes]) -> bytes:
    """Return what `pretty` does for these members and, last, a table of rows as `_kept_rows` encodes them.

    A file may have megabytes, and each copy of them takes a millisecond: the rows are joined, and then the parts.
    """
    rows = (b"{", _ROW, (b"," + _ROW).join(texts), _ROW[:-1], b"}") if texts else (b"{}",)
    return b"".join((pretty(members).removesuffix(b"\n}"), b",\n\t", dumps(name), b":", *rows, b"\n}"))


class TopicTable(ConfigTable[TopicConfigSerializeWrapper]):
    """topics.json (Apache: TopicConfigManager)."""

    def __init__(self, path: str) -> None:
        super().__init__(path, lambda data: decode_body(TopicConfigSerializeWrapper, data))
        self._rows = _kept_rows()
        self.topics: dict[str, TopicConfig] = {}

    def _fill(self, body: TopicConfigSerializeWrapper) -> None:
        self.topics.clear()
        self.topics.update(body.topic_config_table)
        self.data_version = body.data_version

    def _body(self) -> TopicConfigSerializeWrapper:
        return TopicConfigSerializeWrapper(dict(self.topics), self.data_version)

    def _text(self, body: TopicConfigSerializeWrapper) -> bytes:
        texts = self._rows.texts(body.topic_config_table)
        return _with_rows({"dataVersion": to_value(body.data_version)}, "topicConfigTable", texts)


class SubscriptionGroupTable(ConfigTable[SubscriptionGroupWrapper]):
    """subscriptionGroup.json (Apache: SubscriptionGroupManager). `forbidden` maps group to topic to bits, see the body."""

    def __init__(self, path: str) -> None:
        super().__init__(path, lambda data: decode_body(SubscriptionGroupWrapper, data))
        self._rows = _kept_rows()
        self.groups: dict[str, SubscriptionGroupConfig] = {}
        self.forbidden: dict[str, dict[str, int]] = {}

    def _fill(self, body: SubscriptionGroupWrapper) -> None:
        self.groups.clear()
        self.groups.update(body.subscription_group_table)
        self.forbidden = {group: dict(topics) for group, topics in (body.forbidden_table or {}).items()}
        self.data_version = body.data_version

    def _body(self) -> SubscriptionGroupWrapper:
        forbidden = {group: dict(topics) for group, topics in self.forbidden.items()}
        return SubscriptionGroupWrapper(dict(self.groups), self.data_version, forbidden)

    def _text(self, body: SubscriptionGroupWrapper) -> bytes:
        texts = self._rows.texts(body.subscription_group_table)
        members = {"dataVersion": to_value(body.data_version), "forbiddenTable": to_value(body.forbidden_table)}
        return _with_rows(members, "subscriptionGroupTable", texts)


class ConsumerOffsetTable(ConfigTable[ConsumerOffsetSerializeWrapper]):
    """consumerOffset.json (Apache: ConsumerOffsetManager). `offsets` maps "topic@group" to queue id to offset."""

    def __init__(self, path: str) -> None:
        super().__init__(path, lambda data: decode_body(ConsumerOffsetSerializeWrapper, data))
        self.offsets: dict[str, dict[int, int]] = {}

    def _fill(self, body: ConsumerOffsetSerializeWrapper) -> None:
        self.offsets = {key: dict(queues) for key, queues in body.offset_table.items()}
        self.data_version = body.data_version or DataVersion()

    def _body(self) -> ConsumerOffsetSerializeWrapper:
        return self._body_of(list(self.offsets), self.data_version)

    def snapshot(self) -> Callable[[], bool]:
        """Return the same, which copies the rows in its thread: half a million groups take 0.3 s.

        A row may be newer than this call, or missing if it was deleted since. Each is copied in one step of the interpreter.
        """
        keys, version = list(self.offsets), self.data_version
        return lambda: self._file.save(self._text(self._body_of(keys, version)))

    def _text(self, body: ConsumerOffsetSerializeWrapper) -> bytes:
        members = {"groupTopicMap": body.group_topic_map, "offsetTable": body.offset_table}
        return pretty({"dataVersion": to_value(body.data_version), **members})

    def _body_of(self, keys: Iterable[str], version: DataVersion) -> ConsumerOffsetSerializeWrapper:
        offsets: dict[str, dict[int, int]] = {}
        topics: dict[str, list[str]] = {}
        for key in keys:
            queues = self.offsets.get(key)
            if queues is None:
                continue
            offsets[key] = dict(queues)
            topic, separator, group = key.partition(TOPIC_GROUP_SEPARATOR)
            if separator:
                topics.setdefault(group, []).append(topic)
        return ConsumerOffsetSerializeWrapper(offsets, version, topics)


def pretty(value: object) -> bytes:
    """Return JSON with one member a line and tabs, as fastjson's PrettyFormat; maps with integer keys are on one line."""
    return _pretty(value, b"\n")


def _pretty(value: object, line: bytes) -> bytes:
    if not isinstance(value, dict) or not value or all(isinstance(key, int) for key in value):
        return dumps(value)
    inner = line + b"\t"
    members = [dumps(str(key)) + b":" + _pretty(member, inner) for key, member in value.items()]
    return b"{" + inner + (b"," + inner).join(members) + line + b"}"
