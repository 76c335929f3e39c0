"""Defines the paths in the coordinator. Names of topics and groups have no `/`."""

from __future__ import annotations

TOPICS = "/topics"
BROKERS = "/brokers"
GROUPS = "/groups"
KEEPER = "/keeper"
LEADERS = "/leaders"

ROOTS = (TOPICS, BROKERS, GROUPS, KEEPER, LEADERS)
"""Created by the first client that needs them."""


def topic_path(topic: str) -> str:
    """Return the path of the declaration of an ordered topic."""
    return f"{TOPICS}/{topic}"


def unit_path(topic: str, unit: str) -> str:
    """Return the path of the lists of a unit."""
    return f"{TOPICS}/{topic}/{unit}"


def group_path(group: str) -> str:
    """Return the path of operators' wishes for a broker group: whether it is retired."""
    return f"{GROUPS}/{group}"


def members_path(group: str) -> str:
    """Return the path of the living brokers of a group: ephemeral children, named by broker id."""
    return f"{BROKERS}/{group}"


def member_path(group: str, broker_id: int) -> str:
    """Return the path of a living broker: ephemeral, with its address."""
    return f"{BROKERS}/{group}/{broker_id}"


def producers_path(topic: str, unit: str) -> str:
    """Return the path of the candidates for the one active producer of a unit, of all groups: terms rise across groups."""
    return f"{LEADERS}/{topic}/{unit}/producers"


def unreached_path(topic: str, unit: str) -> str:
    """Return the path of a leading producer's report that it cannot reach the head of a unit."""
    return f"{LEADERS}/{topic}/{unit}/unreached"


def consumers_path(topic: str, unit: str) -> str:
    """Return the path of the consumer groups that have, or had, candidates: what they have not consumed is backlog."""
    return f"{LEADERS}/{topic}/{unit}/consumers"


def consumer_group_path(group: str, topic: str, unit: str) -> str:
    """Return the path of the candidates for the one active consumer of a unit in a group."""
    return f"{consumers_path(topic, unit)}/{group}"
