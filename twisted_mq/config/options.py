"""Options classes: attrs fields that carry their Java key, type, doc and limits; files, command lines and remote
updates are read through them.

Rules for a file: a key of the class sets its field; a key that Apache knows and that has no effect here is accepted
and named once in the log; any other key, or a value of the wrong type, is a ConfigError with its line.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

import attrs

from twisted_mq.config.errors import ConfigError, KeyNotAllowed
from twisted_mq.config.known_keys import fault_of_value, known_keys, similar_key
from twisted_mq.config.properties import Entry, read_properties
from twisted_mq.config.unserved import PROMISES, TLS_SETTINGS, broken_promises, refusal
from twisted_mq.config.values import PARSERS, Value, enum_parser, value_text
from twisted_mq.logs import Logger

log = Logger()

OptionsT = TypeVar("OptionsT")
T = TypeVar("T")

_TYPES: dict[type, str] = {bool: "boolean", int: "int", float: "double", str: "string"}


def option(
    key: str,
    default: T,
    doc: str,
    *,
    type: str | type[enum.StrEnum] | None = None,
    low: float | None = None,
    high: float | None = None,
    step: int = 1,
    remote: bool = False,
    secret: bool = False,
    has_effect: bool = True,
) -> T:
    """A field of an options class.

    `default` is a value or, where it depends on the machine, an attrs.Factory; `type` is Java's ("long", or "string"
    where the default is None) or an enumeration, where the default does not say it. Numbers
    are rounded up to a multiple of `step`. `remote` puts the key on the allow-list of what peers may change while
    the daemon runs. A `secret` is never shown. Without `has_effect` nothing depends on the value yet: it is
    checked, and named in the log as unused.
    """
    kind = type or _TYPES[default.__class__]
    parse = PARSERS[kind] if isinstance(kind, str) else enum_parser(kind)
    if default is None and kind == "string":
        parse = _text_or_none
    metadata = {
        "key": key,
        "doc": doc,
        "type": kind,
        "parse": _limited(parse, low, high, step),
        "low": low,
        "high": high,
        "remote": remote,
        "secret": secret,
        "has_effect": has_effect,
    }
    return attrs.field(default=default, metadata=metadata, repr=not secret)


def _text_or_none(text: str) -> str | None:
    """An empty value of a key without default means that it is not set."""
    return text.strip() or None


def _limited(parse: Callable[[str], Value], low: float | None, high: float | None, step: int) -> Callable[[str], Value]:
    if low is None and high is None:
        return parse

    def parse_limited(text: str) -> Value:
        value = parse(text)
        if not isinstance(value, int | float):
            return value
        if low is not None and value < low:
            raise ValueError(f"at least {low} is needed")
        if high is not None and value > high:
            raise ValueError(f"at most {high} is allowed")
        return value if step == 1 else -(-value // step) * step

    return parse_limited


def option_fields(cls: type) -> dict[str, attrs.Attribute[object]]:
    """Java key -> field, in the order of the class."""
    return {field.metadata["key"]: field for field in attrs.fields(cls) if "key" in field.metadata}


def load_options(
    cls: type[OptionsT],
    path: str | None,
    overrides: Mapping[str, str] | None = None,
    *,
    ignore_unsupported: bool = False,
) -> OptionsT:
    """Options from a properties file (None: the defaults) with the command line's values (Java key -> text) on top.

    Logs each known key that means nothing here, on a line of its own. Raises ConfigError, also for what promises safety and is
    not served, unless that is to be ignored: then it is logged.
    """
    entries = [*(read_properties(path) if path else []), *(Entry(*pair) for pair in (overrides or {}).items())]
    options, ignored = read_options(cls, entries, path)
    for key in ignored:
        log.info("{place}: {key} has no effect here", place=_place(entries, key, path), key=key)
    broken = broken_promises(
        entries, [key for key, field in option_fields(cls).items() if field.metadata["has_effect"]]
    )
    if broken and not ignore_unsupported:
        raise refusal(path, broken)
    for entry in broken:
        log.warn("{key}={value} is ignored: {what}", key=entry.key, value=entry.value, what=PROMISES[entry.key].broken)
    return options


def _place(entries: Iterable[Entry], key: str, path: str | None) -> str:
    """Where a key stands that counts."""
    line = [entry.line for entry in entries if entry.key == key][-1]
    return "command line" if line is None else f"{path} line {line}"


def read_options(cls: type[OptionsT], entries: Iterable[Entry], path: str | None = None) -> tuple[OptionsT, list[str]]:
    """The options that these entries make, and the known keys that have no effect here. Raises ConfigError.

    Later entries override earlier ones; those with a line stand in the file at `path`.
    """
    fields = option_fields(cls)
    values: dict[str, Value] = {}
    ignored: dict[str, None] = {}
    for entry in entries:
        if entry.key in fields:
            place = path if entry.line else None
            values[_argument(fields[entry.key])] = _parse(fields[entry.key], entry.value, place, entry.line)
        else:
            _check_unused(entry, path, list(fields))
        if entry.key not in fields or not fields[entry.key].metadata["has_effect"]:
            ignored[entry.key] = None
    return cls(**values), list(ignored)


def parse_updates(cls: type, entries: Iterable[Entry]) -> dict[str, Value]:
    """Attribute name -> new value for a remote update; nothing is changed here.

    Raises KeyNotAllowed for the first key that is not on the allow-list, ConfigError for a wrong value.
    """
    allowed = {key: field for key, field in option_fields(cls).items() if field.metadata["remote"]}
    changes: dict[str, Value] = {}
    for entry in entries:
        field = allowed.get(entry.key)
        if field is None:
            reason = f"cannot be changed while it runs; these can: {', '.join(allowed)}"
            raise KeyNotAllowed(reason, key=entry.key, value=entry.value)
        changes[field.name] = _parse(field, entry.value, None, None)
    return changes


def shown_options(options: object) -> dict[str, Value]:
    """Java key -> value of what peers are shown: not secrets, nor what has no effect, nor what is None."""
    shown = {
        key: getattr(options, field.name)
        for key, field in option_fields(type(options)).items()
        if field.metadata["has_effect"] and not field.metadata["secret"]
    }
    return {key: value for key, value in shown.items() if value is not None}


def options_text(options: object) -> str:
    """What peers are shown as lines of key=value, sorted (Apache: Configuration)."""
    return "".join(f"{key}={value_text(value)}\n" for key, value in sorted(shown_options(options).items()))


def _argument(field: attrs.Attribute[object]) -> str:
    return field.alias or field.name


def _parse(field: attrs.Attribute[object], text: str, path: str | None, line: int | None) -> Value:
    try:
        parse: Callable[[str], Value] = field.metadata["parse"]
        return parse(text)
    except ValueError as error:
        shown = "(secret)" if field.metadata["secret"] else text
        raise ConfigError(str(error), path=path, line=line, key=field.metadata["key"], value=shown) from None


def _check_unused(entry: Entry, path: str | None, own: list[str]) -> None:
    """Pass a key that only other parts of Apache's use; raise ConfigError for the rest."""
    reason: str | None = None
    if entry.key in known_keys():
        reason = fault_of_value(entry.key, entry.value)
    elif entry.key not in TLS_SETTINGS:
        similar = similar_key(entry.key, own)
        reason = "no RocketMQ knows this key" + (f", is {similar} meant?" if similar else "")
    if reason is not None:
        place = path if entry.line else None
        raise ConfigError(reason, path=place, line=entry.line, key=entry.key, value=entry.value)
