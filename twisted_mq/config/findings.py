"""Defines the effect of each line of a configuration file, and the finding that reports it."""

from __future__ import annotations

import enum

import attrs

from twisted_mq.config.properties import Entry


class Effect(enum.StrEnum):
    """The effect of a line.

    A daemon starts with all effects but the last two. `--strict` and `mq config check` accept the first three only.
    """

    USED = "used"
    OVERRIDDEN = "overridden"
    OLD_NAME = "old name"
    CLAMPED = "clamped"
    NO_EFFECT = "no effect"
    UNKNOWN = "unknown"
    NOT_SERVED = "not served"
    WRONG = "wrong"

    @property
    def prevents_start(self) -> bool:
        return self in (Effect.NOT_SERVED, Effect.WRONG)

    @property
    def is_as_written(self) -> bool:
        """True if the file says what happens."""
        return self in (Effect.USED, Effect.OVERRIDDEN, Effect.OLD_NAME)


@attrs.frozen
class Finding:
    """An entry that does not simply set its key. `remark` is a clause without a full stop."""

    entry: Entry
    effect: Effect
    remark: str
