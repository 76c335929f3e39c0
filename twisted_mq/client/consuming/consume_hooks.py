"""What users hang before and behind every call of a consumer's listener (Apache: ConsumeMessageHook)."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Any, Protocol

import attrs

from twisted_mq.logs import Logger
from twisted_mq.protocol.bodies import MessageQueue
from twisted_mq.protocol.messages.message import MessageExt


class CallOutcome(enum.IntEnum):
    """How a call ended, as traces have it (Apache: ConsumeReturnType)."""

    SUCCESS = 0
    TIME_OUT = 1
    EXCEPTION = 2
    RETURNNULL = 3
    FAILED = 4


@attrs.define(eq=False)
class ConsumeCall:
    """One call: what the listener gets, and once it has answered how that went."""

    group: str
    queue: MessageQueue
    messages: Sequence[MessageExt]
    outcome: CallOutcome = CallOutcome.EXCEPTION
    """Also of a call that the consumer's stop cut off."""
    carried: dict[str, Any] = attrs.Factory(dict)
    """From a hook's `before` to its `after`, whatever it likes."""


class ConsumeHook(Protocol):
    """Both are called on the reactor's thread and must not block. What they raise is logged; the call goes on.

    The listener runs in the contextvars that `before` set.
    """

    def before(self, call: ConsumeCall) -> None:
        """The listener is called next."""

    def after(self, call: ConsumeCall) -> None:
        """It has answered, with `outcome`."""


class ConsumeHooks:
    """The hooks of one consumer, called in their order."""

    log = Logger()

    def __init__(self, hooks: Sequence[ConsumeHook]) -> None:
        self._hooks = tuple(hooks)

    def before(self, call: ConsumeCall) -> None:
        """Tell the hooks of a call."""
        for hook in self._hooks:
            try:
                hook.before(call)
            except Exception:
                self.log.failure("consume hook failed before the call: {hook!r} group={g}", hook=hook, g=call.group)

    def after(self, call: ConsumeCall) -> None:
        """Tell the hooks how it ended."""
        for hook in self._hooks:
            try:
                hook.after(call)
            except Exception:
                self.log.failure("consume hook failed after the call: {hook!r} group={g}", hook=hook, g=call.group)
