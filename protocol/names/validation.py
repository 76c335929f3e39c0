"""Rules for the names of topics and groups (Apache: TopicValidator, Validators). Pure rules; remarks as Apache's."""

from __future__ import annotations

import re

from twisted_mq.protocol.names.system_topics import RETRY_PREFIX

TOPIC_MAX_LENGTH = 127
GROUP_MAX_LENGTH = 255

_legal = re.compile(r"[%|a-zA-Z0-9_-]+").fullmatch


def topic_fault(topic: str | None) -> str | None:
    """Return why a topic name is refused; None for a good one. Any name that passes is safe as a directory's name."""
    if not topic or not topic.strip():
        return "The specified topic is blank."
    if _legal(topic) is None:
        return "The specified topic contains illegal characters, allowing only ^[%|a-zA-Z0-9_-]+$"
    if len(topic) > TOPIC_MAX_LENGTH:
        return "The specified topic is longer than topic max length."
    return None


def group_fault(group: str | None) -> str | None:
    """Return why a group name is refused; None for a good one."""
    if not group or not group.strip():
        return "the specified group is blank"
    if _legal(group) is None:
        return "the specified group contains illegal characters, allowing only ^[%|a-zA-Z0-9_-]+$"
    if len(group) > GROUP_MAX_LENGTH:
        return f"the specified group is longer than group max length: {GROUP_MAX_LENGTH}"
    return None


def retry_topic(group: str) -> str:
    """Return the topic in which messages of a group wait for their next try (Apache: MixAll.getRetryTopic)."""
    return RETRY_PREFIX + group
