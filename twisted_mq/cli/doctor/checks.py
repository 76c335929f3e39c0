"""Defines the results of checks."""

from __future__ import annotations

import enum

import attrs


class Result(enum.StrEnum):
    """The result of a check. Only problems make `mq doctor` fail; an unknown result is not a problem."""

    OK = "ok"
    WARNING = "warning"
    PROBLEM = "problem"
    UNKNOWN = "unknown"


@attrs.frozen
class CheckOutcome:
    """A check: what, where, what was found, and what to do if it is not well."""

    check: str
    where: str
    result: Result
    found: str
    remedy: str = ""


COLUMNS = tuple(field.name for field in attrs.fields(CheckOutcome))


def graded(check: str, where: str, found: str, *grades: tuple[bool, Result, str]) -> CheckOutcome:
    """Return the first grade that applies, with its remedy; well if none does."""
    for holds, result, remedy in grades:
        if holds:
            return CheckOutcome(check, where, result, found, remedy)
    return CheckOutcome(check, where, Result.OK, found)
