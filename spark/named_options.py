"""Names of options, and what reads their values, for tables of them. Unknown names are refused, with a hint."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from twisted_mq.spark import option_values as values
from twisted_mq.spark.columns.schema import COLUMN_NAMES, columns_named
from twisted_mq.spark.errors import WrongOption

Parsers = Mapping[str, tuple[str, Callable[[str, str], Any]]]
"""Option -> the attribute that it becomes, and what reads its text; Any, for each has a type of its own."""

_OF_TABLES = frozenset({"owner", "provider", "location", "comment", "external", "is_managed_location", "collation"})
"""What Spark adds of its own to the options of `CREATE TABLE ... USING rocketmq` (Spark: TableCatalog)."""
_OF_STREAMS = frozenset({"checkpointlocation", "queryname"})
"""Spark's own options of a stream, which sinks are given too."""
_SPARKS_OWN = _OF_TABLES | _OF_STREAMS
SECRETS = frozenset({"accessKey", "secretKey", "securityToken"})
"""Options whose values no error shows."""
_AGAIN = "option."
"""Before which Spark repeats the options of a table."""


def named(given: Mapping[str, str], names: Sequence[str], untold: Sequence[str] = ()) -> dict[str, str]:
    """The options by their right names; cases of letters do not matter. `untold` are options of which users do not know.

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
            hint = f", is {close[0]} meant?" if close else ""
            raise WrongOption(
                key,
                "..." if SECRETS.intersection(close) else value,
                f"no such option{hint}; there are {', '.join(names)}",
            )
    return found


def take(known: Mapping[str, str], parsers: Parsers) -> dict[str, Any]:
    """The attributes that these options become, of those that were given. Raises WrongOption."""
    return {field: parse(name, known[name]) for name, (field, parse) in parsers.items() if name in known}


def positive(name: str, value: str) -> int:
    """A whole number from 1 on."""
    found = values.number(name, value)
    if not found:
        raise WrongOption(name, value, "a whole number above 0 is needed")
    return found


def columns(name: str, value: str) -> tuple[str, ...]:
    """Names of columns with commas between, or all."""
    if value.strip() == "all":
        return COLUMN_NAMES
    return tuple(column.name for column in columns_named(values.names(name, value)))


def text(name: str, value: str) -> str:
    """As it is."""
    return value


def one_of(**meanings: bool) -> Callable[[str, str], bool]:
    """A word for each of both."""

    def parse(name: str, value: str) -> bool:
        if value.strip().lower() not in meanings:
            raise WrongOption(name, value, f"{' or '.join(meanings)} is needed")
        return meanings[value.strip().lower()]

    return parse
