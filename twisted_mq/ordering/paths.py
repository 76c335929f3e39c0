"""Where things lie in the coordinator. Names of topics and groups have no `/`."""

from __future__ import annotations

TOPICS = "/topics"
BROKERS = "/brokers"
GROUPS = "/groups"
KEEPER = "/keeper"
LEADERS = "/leaders"

ROOTS = (TOPICS, BROKERS, GROUPS, KEEPER, LEADERS)
"""Made by whoever comes first."""


def topic_path(topic: str) -> str:
    """The declaration of an ordered topic."""
    return f"{TOPICS}/{topic}"


def unit_path(topic: str, unit: str) -> str:
    """The lists of a unit."""
    return f"{TOPICS}/{topic}/{unit}"


def group_path(group: str) -> str:
    """What operators want of a broker group: whether it is retired."""
    return f"{GROUPS}/{group}"


def members_path(group: str) -> str:
    """The living brokers of a group: ephemeral children, named by broker id."""
    return f"{BROKERS}/{group}"


def member_path(group: str, broker_id: int) -> str:
    """One living broker: ephemeral, with its address."""
    return f"{BROKERS}/{group}/{broker_id}"


def producers_path(topic: str, unit: str) -> str:
    """The candidates for the one active producer of a unit, of all groups: their terms rise whatever group leads."""
    return f"{LEADERS}/{topic}/{unit}/producers"


def unreached_path(topic: str, unit: str) -> str:
    """The report of a leading producer that it cannot reach the head of a unit."""
    return f"{LEADERS}/{topic}/{unit}/unreached"


def consumers_path(topic: str, unit: str) -> str:
    """The consumer groups of which there are, or were, candidates: what they have not consumed is backlog."""
    return f"{LEADERS}/{topic}/{unit}/consumers"


def consumer_group_path(group: str, topic: str, unit: str) -> str:
    """The candidates for the one active consumer of a unit in a group."""
    return f"{consumers_path(topic, unit)}/{group}"
