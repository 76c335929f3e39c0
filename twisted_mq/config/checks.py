"""Checks a configuration file line by line, without starting anything: the effect of each key, and what is wrong with it."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from twisted_mq.config.errors import ConfigError
from twisted_mq.config.findings import Effect
from twisted_mq.config.options import option_fields, read_options
from twisted_mq.config.properties import Entry, read_properties
from twisted_mq.config.unserved import PROMISES, broken_promises


@attrs.frozen
class LineCheck:
    """An entry of the file; `remark` says what its key is for, or what is wrong."""

    line: int
    key: str
    effect: Effect
    remark: str


def check_file(cls: type, path: str) -> list[LineCheck]:
    """Return each entry of a properties file as the daemon of these options takes it. Raises ConfigError if it cannot be read."""
    return list(_checked(cls, read_properties(path), path))


def _checked(cls: type, entries: list[Entry], path: str) -> Iterator[LineCheck]:
    fields = option_fields(cls)
    last = {entry.key: entry for entry in entries}
    served = [key for key, field in fields.items() if field.metadata["has_effect"]]
    broken = broken_promises(entries, served)
    for entry in entries:
        line = entry.line or 0
        try:
            _, findings = read_options(cls, [entry], path)
        except ConfigError as error:
            yield LineCheck(line, entry.key, Effect.WRONG, _reason(error))
            continue
        if last[entry.key] is not entry:
            yield LineCheck(line, entry.key, Effect.OVERRIDDEN, f"line {last[entry.key].line} is used")
        elif entry in broken:
            promise = PROMISES[entry.key]
            yield LineCheck(line, entry.key, Effect.NOT_SERVED, f"{promise.broken}; remove it and {promise.instead}")
        elif findings:
            yield LineCheck(line, entry.key, findings[0].effect, findings[0].remark)
        else:
            yield LineCheck(line, entry.key, Effect.USED, str(fields[entry.key].metadata["doc"]))


def _reason(error: ConfigError) -> str:
    """Return the reason without the place, which has columns of its own, and without the value of a secret."""
    value = "" if error.value is None else f"{error.value}: "
    return f"{value}{error.reason}"
