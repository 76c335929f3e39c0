"""Hooks of users before and after every listener call of a consumer (Apache: ConsumeMessageHook)."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Any, Protocol

import attrs

from twisted_mq.logs import Logger
from twisted_mq.protocol.bodies import MessageQueue
from twisted_mq.protocol.messages.message import MessageExt


class CallOutcome(enum.IntEnum):
    """The outcome of a call, as traces report it (Apache: ConsumeReturnType)."""

    SUCCESS = 0
    TIME_OUT = 1
    EXCEPTION = 2
    RETURNNULL = 3
    FAILED = 4


@attrs.define(eq=False)
class ConsumeCall:
    """A listener call: its messages and, once it has ended, its outcome."""

    group: str
    queue: MessageQueue
    messages: Sequence[MessageExt]
    outcome: CallOutcome = CallOutcome.EXCEPTION
    """EXCEPTION also for a call that the consumer's stop cancelled."""
    carried: dict[str, Any] = attrs.Factory(dict)
    """Any values that a hook passes from its `before` to its `after`."""


class ConsumeHook(Protocol):
    """A hook. Its methods are called on the reactor's thread and must not block. Their errors are logged; the call continues.

    The listener runs in the contextvars that `before` set.
    """

    def before(self, call: ConsumeCall) -> None:
        """Handle a call that is about to begin."""

    def after(self, call: ConsumeCall) -> None:
        """Handle a call that has ended, with `outcome`."""


class ConsumeHooks:
    """The hooks of one consumer, called in their order."""

    log = Logger()

    def __init__(self, hooks: Sequence[ConsumeHook]) -> None:
        self._hooks = tuple(hooks)

    def before(self, call: ConsumeCall) -> None:
        """Call the hooks before a listener call."""
        for hook in self._hooks:
            try:
                hook.before(call)
            except Exception:
                self.log.failure("consume hook failed before the call: {hook!r} group={g}", hook=hook, g=call.group)

    def after(self, call: ConsumeCall) -> None:
        """Call the hooks after a listener call."""
        for hook in self._hooks:
            try:
                hook.after(call)
            except Exception:
                self.log.failure("consume hook failed after the call: {hook!r} group={g}", hook=hook, g=call.group)
