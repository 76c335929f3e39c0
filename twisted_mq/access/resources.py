"""Defines the resources of rights (Apache: Resource): a topic, a group, the cluster, by name, by a prefix, or all of a kind.

Topic:Orders      this topic
Topic:Ord*        topics whose names have this prefix
Group:*           all groups
*                 everything
"""

from __future__ import annotations

import enum

import attrs

from twisted_mq.protocol.names.system_topics import RETRY_PREFIX


class ResourceType(enum.StrEnum):
    """The kind of a resource (Apache: ResourceType)."""

    ANY = "Any"
    CLUSTER = "Cluster"
    NAMESPACE = "Namespace"
    TOPIC = "Topic"
    GROUP = "Group"


class Pattern(enum.IntEnum):
    """The way a resource is named (Apache: ResourcePattern); a higher one is more specific."""

    ANY = 0
    PREFIXED = 1
    LITERAL = 2


_TYPES = {one.value.lower(): one for one in ResourceType}
ALL = "*"


@attrs.frozen
class Resource:
    """A resource; `name` is None for Pattern.ANY, and the prefix for Pattern.PREFIXED."""

    type: ResourceType
    name: str | None
    pattern: Pattern = Pattern.LITERAL

    def __str__(self) -> str:
        """Return the resource as policies and remarks write it."""
        if self.type is ResourceType.ANY:
            return ALL
        return f"{self.type}:{self.name or ''}{'' if self.pattern is Pattern.LITERAL else ALL}"

    def covers(self, resource: Resource) -> bool:
        """Return True if a rule about this resource applies to the other, which has a whole name."""
        if self.type is ResourceType.ANY:
            return True
        if self.type is not resource.type:
            return False
        if self.pattern is Pattern.LITERAL:
            return self.name == resource.name
        return self.pattern is Pattern.ANY or (resource.name or "").startswith(self.name or "")


def topic(name: str) -> Resource:
    """Return a topic; for the retry topic of a group, that group."""
    return group(name) if name.startswith(RETRY_PREFIX) else Resource(ResourceType.TOPIC, name)


def group(name: str) -> Resource:
    """Return a group, from its name or that of its retry topic."""
    return Resource(ResourceType.GROUP, name.removeprefix(RETRY_PREFIX))


def cluster(name: str) -> Resource:
    """Return a cluster."""
    return Resource(ResourceType.CLUSTER, name)


def parse_resource(text: str | None) -> Resource | None:
    """Return the resource of a policy's text; None for a malformed text."""
    if text is None or not text.strip():
        return None
    if text == ALL:
        return Resource(ResourceType.ANY, None, Pattern.ANY)
    kind, _, name = text.partition(":")
    resource_type = _TYPES.get(kind.lower())
    if resource_type is None:
        return None
    if name == ALL:
        return Resource(resource_type, None, Pattern.ANY)
    if name.endswith(ALL):
        return Resource(resource_type, name.partition(ALL)[0], Pattern.PREFIXED)
    return Resource(resource_type, name)
