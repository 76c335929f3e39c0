"""Searches topics, groups, brokers and clusters by name, and says where to look for a message."""

from __future__ import annotations

from twisted_mq.admin.calls import brokers
from twisted_mq.admin.groups import group_of
from twisted_mq.admin.topics import TopicKind, kind_of, own_topics_of
from twisted_mq.console.answers import Answer, Page
from twisted_mq.console.visit import Visit
from twisted_mq.protocol.names.system_topics import BROKERS_GROUPS

MOST_OF_A_KIND = 20


async def search(visit: Visit) -> Answer:
    """Show names that contain the text; those that begin with it come first."""
    text = visit.text("q")
    if not text:
        return Page("search.html", {"q": "", "kinds": {}, "found": 0})
    cluster, names = await visit.admin.cluster_info(), await visit.admin.topic_list()
    own, wanted = own_topics_of(cluster), text.lower()
    # names of groups and dead letters are parts of topics' names
    known = [(name, kind_of(name, own)) for name in names if wanted in name.lower()]
    groups = {group_of(name) for name, kind in known if kind is TopicKind.RETRY} - BROKERS_GROUPS
    given_up = {name.removeprefix("%DLQ%") for name, kind in known if kind is TopicKind.DEAD_LETTERS}
    every = brokers(cluster, sorted(cluster.cluster_addr_table or {}))
    found = {
        "Topics": _hits(text, [(name, "/topic", {"name": name}) for name, kind in known if kind is TopicKind.NORMAL]),
        "Groups": _hits(text, [(name, "/group", {"name": name}) for name in groups]),
        "Dead letters": _hits(text, [(name, "/dead-letters/group", {"name": name}) for name in given_up]),
        "Brokers": _hits(
            text,
            [(f"{name} {number} {address}", "/broker", {"address": address}) for _, name, number, address in every],
        ),
        "System topics": _hits(
            text, [(name, "/topic", {"name": name}) for name, kind in known if kind is TopicKind.SYSTEM]
        ),
    }
    return Page("search.html", {"q": text, "kinds": found, "found": sum(len(hits) for hits in found.values())})


Hit = tuple[str, str, dict[str, str]]
"""The text shown, and the page with its fields that it links to."""


def _hits(text: str, names: list[Hit]) -> list[Hit]:
    wanted = text.lower()
    fitting = [one for one in names if wanted in one[0].lower()]
    return sorted(fitting, key=lambda one: (not one[0].lower().startswith(wanted), one[0]))[:MOST_OF_A_KIND]
