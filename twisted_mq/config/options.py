"""Defines options classes: attrs fields with their Java key, type, doc and limits. Files, command lines and remote
updates are read through them.

Rules for a file: a key of the class sets its field, under its name of 4.x too; a value outside its limits is clamped; a
key that has no effect here, or that no RocketMQ knows, is skipped. Each of these, except the old name, is one warning. A
value of the wrong type is a ConfigError with its line. A strict start refuses all of these.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

import attrs

from twisted_mq.config.errors import ConfigError, KeyNotAllowed
from twisted_mq.config.findings import Effect, Finding
from twisted_mq.config.known_keys import OLD_NAMES, fault_of_value, known_keys, unknown_reason
from twisted_mq.config.limits import Limits
from twisted_mq.config.properties import Entry, read_properties
from twisted_mq.config.reasons import reason_of
from twisted_mq.config.unserved import PROMISES, TLS_SETTINGS, broken_promises, refusal
from twisted_mq.config.values import PARSERS, Value, enum_parser, value_text
from twisted_mq.logs import Logger
from twisted_mq.protocol.text.java import camel_case

log = Logger()

OptionsT = TypeVar("OptionsT")
T = TypeVar("T")

_TYPES: dict[type, str] = {bool: "boolean", int: "int", float: "double", str: "string"}


def option(
    default: T,
    doc: str,
    *,
    key: str | None = None,
    type: str | type[enum.StrEnum] | None = None,
    parse: Callable[[str], Value] | None = None,
    low: float | None = None,
    high: float | None = None,
    limits: Limits | None = None,
    remote: bool = False,
    secret: bool = False,
    has_effect: bool = True,
) -> T:
    """Return a field of an options class. Its key is the attribute in camel case, unless `key` says otherwise.

    `default` is a value or, if it depends on the machine, an attrs.Factory. `type` is Java's ("long", or "string" if the
    default is None) or an enumeration, if the default does not determine it. `parse` parses a text that has a form of its
    own. `limits` can say more than `low` and `high`. `remote` puts the key on the allow-list of what peers may change
    while the daemon runs. A `secret` is never shown. Without `has_effect`, nothing depends on the value yet: it is
    checked, and named in the log as unused.
    """
    limits = limits or Limits(low, high)
    kind = type or _TYPES[default.__class__]
    if parse is None:
        parse = PARSERS[kind] if isinstance(kind, str) else enum_parser(kind)
        if default is None and kind == "string":
            parse = _text_or_none
    metadata = {
        "key": key,
        "doc": doc,
        "type": kind,
        "parse": parse,
        "limits": limits,
        "remote": remote,
        "secret": secret,
        "has_effect": has_effect,
    }
    return attrs.field(default=default, metadata=metadata, repr=not secret)


def _text_or_none(text: str) -> str | None:
    """Return None for an empty value of a key without default: it is not set."""
    return text.strip() or None


def key_of(field: attrs.Attribute[object]) -> str:
    """Return the Java key of a field: `flush_disk_type` is flushDiskType unless its declaration says otherwise."""
    key: str | None = field.metadata["key"]
    return camel_case(field.name) if key is None else key


def option_fields(cls: type) -> dict[str, attrs.Attribute[object]]:
    """Return Java key -> field, in the order of the class."""
    return {key_of(field): field for field in attrs.fields(cls) if "key" in field.metadata}


def load_options(
    cls: type[OptionsT],
    path: str | None,
    overrides: Mapping[str, str] | None = None,
    *,
    ignore_unsupported: bool = False,
    strict: bool = False,
    read: Callable[[str], list[Entry]] = read_properties,
) -> OptionsT:
    """Return the options of a file with the command line's values (Java key -> text) on top.

    `path` is None for the defaults alone; `read` reads another kind of file than properties. Logs a warning for each
    finding. Raises ConfigError, also for settings that promise safety and are not served, unless `ignore_unsupported` is
    True: then they are logged. A `strict` start raises it for the first finding and counts the others.
    """
    entries = [*(read(path) if path else []), *(Entry(*pair) for pair in (overrides or {}).items())]
    options, findings = read_options(cls, entries, path)
    broken = broken_promises(
        entries, [key for key, field in option_fields(cls).items() if field.metadata["has_effect"]]
    )
    if broken and not ignore_unsupported:
        raise refusal(path, broken)
    findings = [one for one in findings if one.entry not in broken]
    not_as_written = [one for one in findings if not one.effect.is_as_written]
    if strict and not_as_written:
        raise _strict_refusal(cls, path, not_as_written)
    for entry in broken:
        log.warn("{key}={value} is ignored: {what}", key=entry.key, value=entry.value, what=PROMISES[entry.key].broken)
    for finding in findings:
        tell = log.info if finding.effect.is_as_written else log.warn
        place = _place(finding.entry, path)
        tell("{place}: {key}: {remark}", place=place, key=finding.entry.key, remark=finding.remark)
    return options


def _place(entry: Entry, path: str | None) -> str:
    return "command line" if entry.line is None else f"{path} line {entry.line}"


def _strict_refusal(cls: type, path: str | None, findings: list[Finding]) -> ConfigError:
    """Return the error of the first finding; it says how many more there are."""
    first = findings[0]
    more = f"; {len(findings) - 1} more such keys" if len(findings) > 1 else ""
    return ConfigError(
        f"{first.remark}{more}; --strict refuses it",
        path=path if first.entry.line else None,
        line=first.entry.line,
        key=first.entry.key,
        value=_shown(option_fields(cls).get(first.entry.key), first.entry.value),
    )


def read_options(
    cls: type[OptionsT], entries: Iterable[Entry], path: str | None = None
) -> tuple[OptionsT, list[Finding]]:
    """Return the options of these entries, and one finding for each key that does not simply set its field. Raises ConfigError.

    Later entries override earlier ones, and a key's present name overrides its name of 4.x. Entries with a line are in
    the file at `path`.
    """
    fields = option_fields(cls)
    values: dict[str, Value] = {}
    findings: dict[str, Finding] = {}
    for entry in sorted(entries, key=lambda one: one.key not in OLD_NAMES):
        field = fields.get(OLD_NAMES.get(entry.key, entry.key))
        finding = _without_field(entry, path, list(fields)) if field is None else None
        if field is not None:
            value = _parse(field, entry.value, path if entry.line else None, entry.line)
            values[_argument(field)] = kept = field.metadata["limits"].kept(value)
            finding = _with_field(field, entry, value, kept)
        findings.pop(entry.key, None)
        if finding is not None:
            findings[entry.key] = finding
    return cls(**values), sorted(findings.values(), key=lambda one: (one.entry.line is None, one.entry.line))


def _with_field(field: attrs.Attribute[object], entry: Entry, value: Value, kept: Value) -> Finding | None:
    """Return the finding on an entry whose value was taken, or None if there is nothing to report."""
    fault = field.metadata["limits"].fault(value)
    if not field.metadata["has_effect"]:
        return Finding(entry, Effect.NO_EFFECT, f"no effect here: {reason_of(entry.key)}")
    if fault is not None:
        return Finding(
            entry, Effect.CLAMPED, f"{fault}, so {value_text(kept)} is used instead of {_shown(field, entry.value)}"
        )
    if entry.key in OLD_NAMES:
        return Finding(entry, Effect.OLD_NAME, f"old name of {OLD_NAMES[entry.key]}, used as that")
    return None


def _without_field(entry: Entry, path: str | None, own: list[str]) -> Finding:
    """Return the finding on a key that no field has. Raises ConfigError for a value that no class of Apache's takes."""
    if entry.key in known_keys():
        fault = fault_of_value(entry.key, entry.value)
        if fault is not None:
            place = path if entry.line else None
            raise ConfigError(fault, path=place, line=entry.line, key=entry.key, value=entry.value)
        return Finding(entry, Effect.NO_EFFECT, f"no effect here: {reason_of(entry.key)}")
    if entry.key in TLS_SETTINGS:
        return Finding(entry, Effect.NO_EFFECT, "no effect here: Apache's server reads it from system properties")
    return Finding(entry, Effect.UNKNOWN, unknown_reason(entry.key, own))


def parse_updates(cls: type, entries: Iterable[Entry]) -> dict[str, Value]:
    """Return attribute name -> new value for a remote update, without changing anything.

    Raises KeyNotAllowed for the first key that is not on the allow-list, ConfigError for a wrong value.
    """
    allowed = {key: field for key, field in option_fields(cls).items() if field.metadata["remote"]}
    changes: dict[str, Value] = {}
    for entry in entries:
        field = allowed.get(entry.key)
        if field is None:
            reason = f"cannot be changed at run time; these can: {', '.join(allowed)}"
            raise KeyNotAllowed(reason, key=entry.key, value=entry.value)
        value = _parse(field, entry.value, None, None)
        fault = field.metadata["limits"].fault(value)
        if fault is not None:
            raise ConfigError(fault, key=entry.key, value=_shown(field, entry.value))
        changes[field.name] = field.metadata["limits"].kept(value)
    return changes


def shown_options(options: object) -> dict[str, Value]:
    """Return Java key -> value of the settings that peers may see: no secrets, none without effect, none that are None."""
    shown = {
        key: getattr(options, field.name)
        for key, field in option_fields(type(options)).items()
        if field.metadata["has_effect"] and not field.metadata["secret"]
    }
    return {key: value for key, value in shown.items() if value is not None}


def options_text(options: object) -> str:
    """Return the settings that peers may see as lines of key=value, sorted (Apache: Configuration)."""
    return "".join(f"{key}={value_text(value)}\n" for key, value in sorted(shown_options(options).items()))


def _argument(field: attrs.Attribute[object]) -> str:
    return field.alias or field.name


def _shown(field: attrs.Attribute[object] | None, text: str) -> str:
    return "(secret)" if field is not None and field.metadata["secret"] else text


def _parse(field: attrs.Attribute[object], text: str, path: str | None, line: int | None) -> Value:
    """Return the value, before limits clamp it. Raises ConfigError for another type, and outside limits that are refused."""
    limits: Limits = field.metadata["limits"]
    parse: Callable[[str], Value] = field.metadata["parse"]
    try:
        value = parse(text)
        fault = limits.fault(value) if limits.refused else None
        if fault is not None:
            raise ValueError(fault)
    except ValueError as error:
        key = key_of(field)
        raise ConfigError(str(error), path=path, line=line, key=key, value=_shown(field, text)) from None
    return value
