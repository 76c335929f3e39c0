"""What users hang before and behind every send of a producer (Apache: SendMessageHook)."""

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
    """One send: what leaves, and once it has ended what became of it. Several messages are a batch."""

    group: str
    messages: list[Message]
    """Copies of the user's: `before` may set properties."""
    queue: MessageQueue | None = None
    """The one given; None where the producer chooses."""
    one_way: bool = False
    result: SendResult | None = None
    error: BaseException | None = None
    carried: dict[str, Any] = attrs.Factory(dict)
    """From a hook's `before` to its `after`, whatever it likes."""


class SendHook(Protocol):
    """Both are called on the reactor's thread and must not block. What they raise is logged; the send goes on."""

    def before(self, context: SendContext) -> None:
        """The send begins; nothing has been checked or encoded yet."""

    def after(self, context: SendContext) -> None:
        """The send has ended, with `result` or `error`; a one-way send with neither."""


class SendHooks:
    """The hooks of one producer, called in their order."""

    log = Logger()

    def __init__(self, group: str, hooks: Sequence[SendHook]) -> None:
        self._group = group
        self._hooks = tuple(hooks)

    def before(self, messages: Sequence[Message], queue: MessageQueue | None, *, one_way: bool = False) -> SendContext:
        """Tell the hooks of a send; the messages to send are those of the context."""
        copies = [copied(one) for one in messages]
        context = SendContext(self._group, copies, queue, one_way)
        for hook in self._hooks:
            try:
                hook.before(context)
            except Exception:
                self.log.failure("send hook failed before the send: {hook!r} group={g}", hook=hook, g=self._group)
        return context

    def after(self, context: SendContext, result: SendResult | None = None, error: BaseException | None = None) -> None:
        """Tell the hooks how the send ended."""
        context.result, context.error = result, error
        for hook in self._hooks:
            try:
                hook.after(context)
            except Exception:
                self.log.failure("send hook failed after the send: {hook!r} group={g}", hook=hook, g=self._group)


def copied(message: Message) -> Message:
    """The same message with properties of its own. Raises MessageIllegal for what is none."""
    if not isinstance(message, Message):
        raise MessageIllegal(f"a Message is needed, got {message!r}")
    return Message(message.topic, message.body, message.flag, dict(message.properties))
