"""The public names of the client library, for Sphinx to describe from their docstrings."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Callable
from types import ModuleType

import twisted_mq.aio
import twisted_mq.blocking
import twisted_mq.client
from docs.generate.tables import code, table

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


SIDE_BY_SIDE: tuple[ModuleType, ...] = (twisted_mq.client, twisted_mq.aio, twisted_mq.blocking)
"""The faces, in the order of the columns."""


_NAMED = re.compile(r"<(\w+\.\w+): [^>]*>|<[^<>]*?(\w+)>")
"""A default's repr -> its name: members of enums, functions."""


def side_by_side() -> str:
    """The classes that each face has its own form of: one table a class, one row a method."""
    classes = [name for name in sorted(twisted_mq.client.HOMES) if _has_own_forms(name)]
    head = [*(f"`{face.__name__}`" for face in SIDE_BY_SIDE), "does"]
    return "\n".join(f"### {name}\n\n{table(head, _rows(name))}" for name in classes)


def _has_own_forms(name: str) -> bool:
    forms = [getattr(face, name, None) for face in SIDE_BY_SIDE]
    return all(inspect.isclass(form) for form in forms) and len(set(forms)) == len(forms) and not _is_error(name)


def _rows(name: str) -> list[list[str]]:
    forms = [getattr(face, name) for face in SIDE_BY_SIDE]
    methods = dict.fromkeys(
        method for form in forms for method, value in inspect.getmembers(form, inspect.isfunction) if method[0] != "_"
    )
    made = [code(f"{name}({_arguments(form)})") for form in forms]
    return [[*made, _summary(forms[0])], *([*_calls(forms, method), _does(forms, method)] for method in methods)]


def _calls(forms: list[type], method: str) -> list[str]:
    return [code(_call(getattr(form, method))) if hasattr(form, method) else "" for form in forms]


def _call(function: Callable[..., object]) -> str:
    kept = f"{function.__name__}({_arguments(function)})"
    return f"await {kept}" if inspect.iscoroutinefunction(function) else kept


def _arguments(function: Callable[..., object]) -> str:
    """The parameters by name and default, without `self` and without types."""
    given = [one.replace(annotation=one.empty) for one in inspect.signature(function).parameters.values()]
    plain = inspect.Signature([one for one in given if one.name != "self"])
    return _NAMED.sub(r"\1\2", str(plain)[1:-1])


def _does(forms: list[type], method: str) -> str:
    return next(_summary(getattr(form, method)) for form in forms if hasattr(form, method))


def _summary(value: object) -> str:
    """The first sentence of a docstring."""
    return re.split(r"(?<=[.:]) (?=[A-Z])|\n\n", inspect.getdoc(value) or "")[0]


def client() -> str:
    """Each name of `twisted_mq.client` under its part."""
    names = sorted(twisted_mq.client.HOMES)
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
    """Describe the classes that only one face has."""
    face = importlib.import_module(module)
    own = [name for name in face.__all__ if face.HOMES[name].startswith(f"{module}.")]
    more = {"class": "   :inherited-members: Exception\n"}
    kinds = {name: _kind(getattr(face, name)) for name in own}
    return "".join(f".. auto{kind}:: {module}.{name}\n{more.get(kind, '')}" for name, kind in kinds.items())


def _kind(value: object) -> str:
    """Return Sphinx's word for a value; values other than classes and functions are data."""
    if inspect.isclass(value):
        return "class"
    return "function" if inspect.isfunction(value) else "data"


def _is_error(name: str) -> bool:
    value = getattr(twisted_mq.client, name)
    return inspect.isclass(value) and issubclass(value, Exception)


def _directives(names: list[str]) -> str:
    kinds = {name: _kind(getattr(twisted_mq.client, name)) for name in names}
    more = {"Admin": "   :inherited-members:\n"}  # its methods come from its parts
    return "".join(f".. auto{kind}:: twisted_mq.client.{name}\n{more.get(name, '')}" for name, kind in kinds.items())
