"""What a check says."""

from __future__ import annotations

import enum

import attrs


class Result(enum.StrEnum):
    """How a check ended. Only problems make `mq doctor` fail; what can't be told is no problem."""

    OK = "ok"
    WARNING = "warning"
    PROBLEM = "problem"
    UNKNOWN = "unknown"


@attrs.frozen
class Check:
    """One thing that was looked at: what, where, what was found, and what to do where it is not well."""

    check: str
    where: str
    result: Result
    found: str
    remedy: str = ""


COLUMNS = tuple(field.name for field in attrs.fields(Check))


def graded(check: str, where: str, found: str, *grades: tuple[bool, Result, str]) -> Check:
    """The first of the grades that holds, with its remedy; well where none does."""
    for holds, result, remedy in grades:
        if holds:
            return Check(check, where, result, found, remedy)
    return Check(check, where, Result.OK, found)
