"""Maps addresses to pages, and says who may request them. Only forms sent by operators change anything."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, Literal

import attrs

from twisted_mq.console.answers import Answer
from twisted_mq.console.pages import (
    access,
    clients,
    clusters,
    dead_letters,
    group_settings,
    groups,
    messages,
    ordered,
    search,
    topics,
    waiting,
)
from twisted_mq.console.sessions import Role
from twisted_mq.console.visit import Visit

PageMaker = Callable[[Visit], Coroutine[Any, Any, Answer]]


@attrs.frozen
class Route:
    """A page, or the action of a form."""

    path: str
    page: PageMaker
    method: Literal["GET", "POST"] = "GET"
    needs: Role = Role.READER


def _form(path: str, page: PageMaker) -> Route:
    return Route(path, page, "POST", Role.OPERATOR)


ROUTES = (
    Route("/", clusters.overview),
    Route("/broker", clusters.broker),
    _form("/broker/setting", clusters.change_setting),
    _form("/broker/writing", clusters.change_writing),
    Route("/charts", clusters.charts),
    Route("/api/figures", clusters.figures),
    Route("/api/history", clusters.history),
    Route("/topics", topics.topics),
    Route("/topic", topics.topic),
    _form("/topics/create", topics.create),
    _form("/topic/change", topics.change),
    _form("/topic/delete", topics.delete),
    _form("/topic/send", topics.send),
    Route("/groups", groups.groups),
    Route("/group", groups.group),
    _form("/groups/create", group_settings.create),
    _form("/group/configure", group_settings.configure),
    _form("/group/delete", group_settings.delete),
    Route("/group/reset", groups.preview),
    _form("/group/reset", groups.reset),
    Route("/messages", messages.messages),
    Route("/message", messages.message),
    Route("/message/body", messages.body),
    _form("/message/consume", clients.consume_directly),
    Route("/group/client", clients.consumer),
    Route("/producers", clients.producers),
    Route("/dead-letters", dead_letters.groups),
    Route("/dead-letters/group", dead_letters.group),
    Route("/dead-letters/export", dead_letters.export),
    _form("/dead-letters/resend", dead_letters.resend),
    Route("/dead-letters/progress", dead_letters.progress),
    _form("/dead-letters/stop", dead_letters.stop),
    Route("/access", access.access),
    _form("/access/user/create", access.create_user),
    _form("/access/user/change", access.change_user),
    _form("/access/user/delete", access.delete_user),
    _form("/access/grant", access.grant),
    _form("/access/revoke", access.revoke),
    Route("/search", search.search),
    Route("/ordered", ordered.ordered),
    Route("/waiting", waiting.waiting),
    Route("/waiting/delayed", waiting.delayed),
)


@attrs.frozen
class MenuEntry:
    """A page of the menu; `below` are the prefixes of addresses that belong to it."""

    path: str
    title: str
    below: tuple[str, ...] = ()


NAVIGATION = (
    MenuEntry("/", "Clusters", ("/broker",)),
    MenuEntry("/topics", "Topics", ("/topic",)),
    MenuEntry("/groups", "Groups", ("/group",)),
    MenuEntry("/producers", "Producers"),
    MenuEntry("/messages", "Messages", ("/message",)),
    MenuEntry("/dead-letters", "Dead letters", ("/dead-letters/",)),
    MenuEntry("/waiting", "Waiting", ("/waiting/",)),
    MenuEntry("/ordered", "Ordered"),
    MenuEntry("/access", "Users"),
    MenuEntry("/charts", "Charts"),
)
