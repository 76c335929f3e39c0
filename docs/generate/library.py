"""The public names of the client library, for Sphinx to describe from their docstrings."""

from __future__ import annotations

import inspect

import twisted_mq.client

_PARTS = {
    "Producers": ("Producer", "Sen", "Transaction", "Message", "reply_message"),
    "Consumers": ("PushConsumer", "LitePullConsumer", "Consume", "Consumer", "FlowLimits"),
    "Strict order": ("Ordered", "Window"),
    "Clients": ("MQClient", "ClientOptions"),
}
"""Title -> beginnings of the names that stand below it; errors come last."""


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
    return "\n".join(
        f"## {title}\n\n```{{eval-rst}}\n{_directives(found)}```\n" for title, found in parts.items() if found
    )


def _is_error(name: str) -> bool:
    value = getattr(twisted_mq.client, name)
    return inspect.isclass(value) and issubclass(value, Exception)


def _directives(names: list[str]) -> str:
    kinds = {name: "class" if inspect.isclass(getattr(twisted_mq.client, name)) else "function" for name in names}
    return "".join(f".. auto{kind}:: twisted_mq.client.{name}\n" for name, kind in kinds.items())
