"""Hooks of users before and after every send of a producer (Apache: SendMessageHook)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import attrs

from twisted_mq.client.core.errors import MessageIllegal
from twisted_mq.client.producing.send_result import SendResult
from twisted_mq.logs import Logger
from twisted_mq.protocol.bodies import MessageQueue
from twisted_mq.protocol.messages.message import Message


@attrs.define(eq=False)
class SendContext:
    """A send: its messages and, once it has ended, its result. Several messages are a batch."""

    group: str
    messages: list[Message]
    """Copies of the user's messages: `before` may set properties."""
    queue: MessageQueue | None = None
    """The queue that the caller gave; None if the producer chooses."""
    one_way: bool = False
    result: SendResult | None = None
    error: BaseException | None = None
    carried: dict[str, Any] = attrs.Factory(dict)
    """Any values that a hook passes from its `before` to its `after`."""


class SendHook(Protocol):
    """A hook. Its methods are called on the reactor's thread and must not block. Their errors are logged; the send continues."""

    def before(self, context: SendContext) -> None:
        """Handle a send that begins; nothing has been checked or encoded yet."""

    def after(self, context: SendContext) -> None:
        """Handle a send that has ended, with `result` or `error`; a one-way send has neither."""


class SendHooks:
    """The hooks of one producer, called in their order."""

    log = Logger()

    def __init__(self, group: str, hooks: Sequence[SendHook]) -> None:
        self._group = group
        self._hooks = tuple(hooks)

    def before(self, messages: Sequence[Message], queue: MessageQueue | None, *, one_way: bool = False) -> SendContext:
        """Call the hooks before a send; the messages to send are those of the context."""
        copies = [copied(one) for one in messages]
        context = SendContext(self._group, copies, queue, one_way)
        for hook in self._hooks:
            try:
                hook.before(context)
            except Exception:
                self.log.failure("send hook failed before the send: {hook!r} group={g}", hook=hook, g=self._group)
        return context

    def after(self, context: SendContext, result: SendResult | None = None, error: BaseException | None = None) -> None:
        """Call the hooks after a send."""
        context.result, context.error = result, error
        for hook in self._hooks:
            try:
                hook.after(context)
            except Exception:
                self.log.failure("send hook failed after the send: {hook!r} group={g}", hook=hook, g=self._group)


def copied(message: Message) -> Message:
    """Return the same message with a copy of its properties. Raises MessageIllegal for a value that is not a message."""
    if not isinstance(message, Message):
        raise MessageIllegal(f"must be a Message, got {message!r}")
    return Message(message.topic, message.body, message.flag, dict(message.properties))
