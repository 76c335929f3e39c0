"""Defines the range of a number in the configuration, and the value that is used instead of one outside it."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from twisted_mq.config.values import Value


@attrs.frozen
class Limits:
    """A number from `low` to `high`, both included; None: no such end.

    `choices` are the only accepted values, in ascending order. Rounding up to a multiple of `step` is not a fault.
    Values outside limits that are `refused` have no sensible replacement: there is no port near 70000.
    """

    low: float | None = None
    high: float | None = None
    step: int = 1
    choices: Sequence[int] = ()
    refused: bool = False

    def fault(self, value: Value) -> str | None:
        """Return why a value is outside; None if it is inside, or not a number."""
        if isinstance(value, bool) or not isinstance(value, int | float):
            return None
        if self.low is not None and value < self.low:
            return f"must be at least {self.low}"
        if self.high is not None and value > self.high:
            return f"must be at most {self.high}"
        if self.choices and value not in self.choices:
            return f"must be one of {', '.join(map(str, self.choices))}"
        return None

    def kept(self, value: Value) -> Value:
        """Return the value that is used: the nearest end, the next lower choice, the next multiple of `step`."""
        if isinstance(value, bool) or not isinstance(value, int | float):
            return value
        inside: int | float = value
        if self.low is not None and inside < self.low:
            inside = type(value)(self.low)
        if self.high is not None and inside > self.high:
            inside = type(value)(self.high)
        if self.choices:
            inside = max((one for one in self.choices if one <= inside), default=self.choices[0])
        return inside if self.step == 1 else -(-inside // self.step) * self.step


PORT = Limits(0, 65535, refused=True)
