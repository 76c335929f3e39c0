"""The public names of the client library, for Sphinx to describe from their docstrings."""

from __future__ import annotations

import importlib
import inspect

import twisted_mq.client

_PARTS = {
    "Producers": ("Producer", "Sen", "Transaction", "Message", "reply_message"),
    "Consumers": ("PushConsumer", "LitePullConsumer", "Consume", "Consumer", "FlowLimits"),
    "Strict order": ("Ordered", "Window"),
    "Clients": ("MQClient", "ClientOptions"),
    "Administration": (
        "Admin",
        "TopicD",
        "TopicK",
        "TopicQ",
        "TopicS",
        "Group",
        "QueueLag",
        "OffsetMove",
        "GivenUp",
        "Resent",
        "BrokerFigures",
        "User",
        "Right",
    ),
}
"""Title -> beginnings of the names that stand below it; errors come last."""

FACES = {"For asyncio": "twisted_mq.aio", "In plain calls": "twisted_mq.blocking"}
"""Title -> the module whose own names stand below it; all others are those of `twisted_mq.client`."""


def client() -> str:
    """Each name of `twisted_mq.client` under its part."""
    names = twisted_mq.client.__all__
    errors = [name for name in names if _is_error(name)]
    parts = {
        title: [name for name in names if name.startswith(starts) and name not in errors]
        for title, starts in _PARTS.items()
    }
    left = [name for name in names if not any(name in found for found in (*parts.values(), errors))]
    parts |= {"Other names": left, "Errors": errors}
    sections = [(title, _directives(found)) for title, found in parts.items() if found]
    sections += [(title, _own(module)) for title, module in FACES.items()]
    return "\n".join(f"## {title}\n\n```{{eval-rst}}\n{text}```\n" for title, text in sections)


def _own(module: str) -> str:
    """What a face has of its own."""
    face = importlib.import_module(module)
    own = [name for name in face.__all__ if getattr(face, name).__module__.startswith(f"{module}.")]
    return "".join(f".. autoclass:: {module}.{name}\n   :inherited-members: Exception\n" for name in own)


def _is_error(name: str) -> bool:
    value = getattr(twisted_mq.client, name)
    return inspect.isclass(value) and issubclass(value, Exception)


def _directives(names: list[str]) -> str:
    kinds = {name: "class" if inspect.isclass(getattr(twisted_mq.client, name)) else "function" for name in names}
    more = {"Admin": "   :inherited-members:\n"}  # its methods come from its parts
    return "".join(f".. auto{kind}:: twisted_mq.client.{name}\n{more.get(name, '')}" for name, kind in kinds.items())
