"""Tables of configuration keys, from the daemons' options classes and from what Apache's classes take."""

from __future__ import annotations

import enum
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeAlias

import attrs

from docs.generate.tables import code, table
from twisted_mq.broker.options import BrokerOptions
from twisted_mq.config.known_keys import known_keys
from twisted_mq.config.options import key_of, option_fields
from twisted_mq.config.reasons import reason_of
from twisted_mq.config.values import value_text
from twisted_mq.namesrv.options import NamesrvOptions
from twisted_mq.proxy.options import ProxyServiceOptions

Option: TypeAlias = "attrs.Attribute[Any]"
"""A value of any type: each option has its own."""

HEAD = ("key", "type", "default", "while it runs", "meaning")
EVERY_HEAD = ("key", "of", "default", "effect", "meaning")
_TITLE_OR_FIELD = re.compile(r"^    (?:# (?P<title>[a-z].*)|(?P<field>\w+): .*)$", re.MULTILINE)


def broker() -> str:
    """The broker's keys, under the titles that stand between its fields."""
    return _sections(BrokerOptions)


def name_server() -> str:
    return _sections(NamesrvOptions)


def proxy() -> str:
    """The proxy's keys. Local mode has those of `ProxyOptions`."""
    return _sections(ProxyServiceOptions)


def without_effect() -> str:
    """Keys that are checked, and change nothing here."""
    fields = [field for cls in (BrokerOptions, NamesrvOptions) for field in option_fields(cls).values()]
    unused = [field for field in fields if not field.metadata["has_effect"]]
    rows = ([*(cell for cell in _row(field) if cell is not None), reason_of(key_of(field))] for field in unused)
    return table((*HEAD[:3], *HEAD[4:], "why not"), rows)


def other_keys() -> str:
    """Keys of Apache's classes that no options class here has, under the first class that takes them."""
    own = (
        option_fields(BrokerOptions).keys()
        | option_fields(NamesrvOptions).keys()
        | option_fields(ProxyServiceOptions).keys()
    )
    by_class: dict[str, list[str]] = {}
    for key, forms in sorted(known_keys().items()):
        if key not in own:
            by_class.setdefault(forms[0].classes[0], []).append(key)
    return table(
        ("Apache's class", "keys"), ((name, ", ".join(map(code, by_class[name]))) for name in sorted(by_class))
    )


def every_key() -> str:
    """All keys that a file may have, by name: whose they are, and what they do here."""
    own = {
        "broker": option_fields(BrokerOptions),
        "name server": option_fields(NamesrvOptions),
        "proxy": option_fields(ProxyServiceOptions),
    }
    keys = set(known_keys()).union(*own.values())
    return table(EVERY_HEAD, (_every_row(key, own) for key in sorted(keys, key=lambda key: (key.lower(), key))))


def _every_row(key: str, own: dict[str, dict[str, Option]]) -> list[str]:
    holders = [name for name, fields in own.items() if key in fields]
    if not holders:
        form = known_keys()[key][0]
        default = "depends on the machine" if form.default is None else code(value_text(form.default))
        return [code(key), f"Apache's {form.classes[0]}", default, f"no: {reason_of(key)}", ""]
    field = own[holders[0]][key]
    has_effect = any(own[name][key].metadata["has_effect"] for name in holders)
    effect = "yes" if has_effect else f"no: {reason_of(key)}"
    return [code(key), ", ".join(holders), _default(field), effect, field.metadata["doc"]]


def _sections(cls: type) -> str:
    """Tables of the keys with effect."""
    fields = {field.name: field for field in option_fields(cls).values() if field.metadata["has_effect"]}
    parts: list[tuple[str, list[Option]]] = [("", [])]
    for title, name in _titles_and_fields(cls):
        if title:
            parts.append((title, []))
        elif name in fields:
            parts[-1][1].append(fields[name])
    return "\n".join(_section(title, found) for title, found in parts if found)


def _titles_and_fields(cls: type) -> Iterator[tuple[str, str]]:
    for one in filter(attrs.has, cls.__mro__):
        for match in _TITLE_OR_FIELD.finditer(inspect.getsource(one)):
            yield match["title"] or "", match["field"] or ""


def _section(title: str, fields: list[Option]) -> str:
    head = f"### {title[0].upper()}{title[1:]}\n\n" if title else ""
    return head + table(HEAD, (_row(field, remote=True) for field in fields))


def _row(field: Option, *, remote: bool = False) -> list[str | None]:
    metadata = field.metadata
    while_it_runs = ("may change" if metadata["remote"] else "fixed") if remote else None
    doc = f"{metadata['doc']} (never shown)" if metadata["secret"] else metadata["doc"]
    return [code(key_of(field)), _type(metadata), _default(field), while_it_runs, doc]


def _type(metadata: dict[str, Any]) -> str:
    kind = metadata["type"]
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        return ", ".join(code(one.value) for one in kind)
    bounds = metadata["limits"]
    if bounds.choices:
        return f"{kind}: {', '.join(map(code, map(str, bounds.choices)))}"
    low, high = bounds.low, bounds.high
    limits = {(True, True): "", (False, True): f", at least {low}", (True, False): f", at most {high}"}
    return f"{kind}{limits.get((low is None, high is None), f', {low} to {high}')}"


def _default(field: Option) -> str:
    if field.default is None:
        return "unset"
    if not isinstance(field.default, attrs.Factory):  # type: ignore[arg-type]
        return code(value_text(field.default))
    words = inspect.getdoc(field.default.factory)
    return words.partition(";")[0] if words else code(field.default.factory().replace(str(Path.home()), "~"))
