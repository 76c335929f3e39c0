"""Which address is which page, and who may ask for it. What changes something is a form that is sent, by operators alone."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, Literal

import attrs

from twisted_mq.console.answers import Answer
from twisted_mq.console.pages import clusters, dead_letters, groups, messages, ordered, topics, waiting
from twisted_mq.console.sessions import Role
from twisted_mq.console.visit import Visit

PageMaker = Callable[[Visit], Coroutine[Any, Any, Answer]]


@attrs.frozen
class Route:
    """A page, or what a form does."""

    path: str
    page: PageMaker
    method: Literal["GET", "POST"] = "GET"
    needs: Role = Role.READER


def _form(path: str, page: PageMaker) -> Route:
    return Route(path, page, "POST", Role.OPERATOR)


ROUTES = (
    Route("/", clusters.overview),
    Route("/broker", clusters.broker),
    Route("/charts", clusters.charts),
    Route("/api/figures", clusters.figures),
    Route("/topics", topics.topics),
    Route("/topic", topics.topic),
    _form("/topics/create", topics.create),
    _form("/topic/change", topics.change),
    _form("/topic/delete", topics.delete),
    _form("/topic/send", topics.send),
    Route("/groups", groups.groups),
    Route("/group", groups.group),
    Route("/group/reset", groups.preview),
    _form("/group/reset", groups.reset),
    Route("/messages", messages.messages),
    Route("/message", messages.message),
    Route("/message/body", messages.body),
    Route("/dead-letters", dead_letters.groups),
    Route("/dead-letters/group", dead_letters.group),
    Route("/dead-letters/export", dead_letters.export),
    _form("/dead-letters/resend", dead_letters.resend),
    Route("/ordered", ordered.ordered),
    Route("/waiting", waiting.waiting),
    Route("/waiting/delayed", waiting.delayed),
)


@attrs.frozen
class MenuEntry:
    """A page of the menu; `below` are the beginnings of addresses that belong to it."""

    path: str
    title: str
    below: tuple[str, ...] = ()


NAVIGATION = (
    MenuEntry("/", "Clusters", ("/broker",)),
    MenuEntry("/topics", "Topics", ("/topic",)),
    MenuEntry("/groups", "Groups", ("/group",)),
    MenuEntry("/messages", "Messages", ("/message",)),
    MenuEntry("/dead-letters", "Dead letters", ("/dead-letters/",)),
    MenuEntry("/waiting", "Waiting", ("/waiting/",)),
    MenuEntry("/ordered", "Ordered"),
    MenuEntry("/charts", "Charts"),
)
