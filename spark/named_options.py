"""Option names with the parsers of their values. Unknown names are refused, with a hint."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from twisted_mq.spark import option_values as values
from twisted_mq.spark.columns.schema import COLUMN_NAMES, columns_named
from twisted_mq.spark.errors import WrongOption

Parsers = Mapping[str, tuple[str, Callable[[str, str], Any]]]
"""Option -> its attribute, and the parser of its text; Any, because each has its own type."""

_OF_TABLES = frozenset({"owner", "provider", "location", "comment", "external", "is_managed_location", "collation"})
"""Options that Spark adds to those of `CREATE TABLE ... USING rocketmq` (Spark: TableCatalog)."""
_OF_STREAMS = frozenset({"checkpointlocation", "queryname"})
"""Spark's own options of a stream, which sinks get too."""
_SPARKS_OWN = _OF_TABLES | _OF_STREAMS
SECRETS = frozenset({"accessKey", "secretKey", "securityToken"})
"""Options whose values are not shown in errors."""
_AGAIN = "option."
"""Prefix with which Spark repeats the options of a table."""


def named(given: Mapping[str, str], names: Sequence[str], untold: Sequence[str] = ()) -> dict[str, str]:
    """Return the options by their exact names; names are not case-sensitive. `untold` are undocumented options.

    Raises WrongOption for other names.
    """
    by_lower_name = {name.lower(): name for name in (*names, *untold)}
    found = {}
    for key, value in given.items():
        name = by_lower_name.get(key.lower())
        if name is not None:
            found[name] = value
        elif key.lower() not in _SPARKS_OWN and not key.lower().startswith(_AGAIN):
            close = [by_lower_name[one] for one in difflib.get_close_matches(key.lower(), by_lower_name, 1)]
            hint = f", did you mean {close[0]}?" if close else ""
            raise WrongOption(
                key,
                "..." if SECRETS.intersection(close) else value,
                f"unknown option{hint}; the options are {', '.join(names)}",
            )
    return found


def take(known: Mapping[str, str], parsers: Parsers) -> dict[str, Any]:
    """Return the attributes of the given options. Raises WrongOption."""
    return {field: parse(name, known[name]) for name, (field, parse) in parsers.items() if name in known}


def positive(name: str, value: str) -> int:
    """Parse a whole number of at least 1."""
    found = values.number(name, value)
    if not found:
        raise WrongOption(name, value, "a whole number above 0 is needed")
    return found


def columns(name: str, value: str) -> tuple[str, ...]:
    """Parse names of columns separated by commas, or `all`."""
    if value.strip() == "all":
        return COLUMN_NAMES
    return tuple(column.name for column in columns_named(values.names(name, value)))


def text(name: str, value: str) -> str:
    """Return the text unchanged."""
    return value


def one_of(**meanings: bool) -> Callable[[str, str], bool]:
    """Return a parser for one of two words."""

    def parse(name: str, value: str) -> bool:
        if value.strip().lower() not in meanings:
            raise WrongOption(name, value, f"{' or '.join(meanings)} is needed")
        return meanings[value.strip().lower()]

    return parse
