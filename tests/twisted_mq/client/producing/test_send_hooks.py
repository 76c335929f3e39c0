"""Data of sends in hooks, and changes that they may make."""

from __future__ import annotations

from typing import Any

from tests.twisted_mq.client.producing.test_producer import ProducerCase
from twisted_mq.client import Message, MessageIllegal, ProducerOptions, SendContext


class Noting:
    """A hook that sets a property, and records its calls."""

    def __init__(self, fail: bool = False) -> None:
        self.told: list[tuple[Any, ...]] = []
        self.fail = fail

    def before(self, context: SendContext) -> None:
        for message in context.messages:
            message.properties["traceparent"] = "00-1"
        context.carried["begun"] = len(self.told)
        if self.fail:
            raise ValueError("broken hook")

    def after(self, context: SendContext) -> None:
        status = None if context.result is None else context.result.status.name
        error = type(context.error).__name__
        self.told.append(
            (context.group, len(context.messages), status, error, context.one_way, context.carried["begun"])
        )
        if self.fail:
            raise ValueError("broken hook")


class Hooks(ProducerCase):
    def test_hooks_see_every_send_and_how_it_ended(self) -> None:
        hook = Noting()
        producer = self.started(ProducerOptions(hooks=[hook]))
        message = Message("T", b"x")
        self.run_to_end(producer.send(message))
        self.run_to_end(producer.send_batch([message, message]))
        self.run_to_end(producer.send_one_way(message))
        self.run_to_failure(producer.send(Message("T", b"")), MessageIllegal)
        self.assertEqual(
            hook.told,
            [
                ("g", 1, "SEND_OK", "NoneType", False, 0),
                ("g", 2, "SEND_OK", "NoneType", False, 1),
                ("g", 1, None, "NoneType", True, 2),
                ("g", 1, None, "MessageIllegal", False, 3),
            ],
        )
        self.assertEqual(message.properties, {})
        self.settle()
        self.assertEqual({one.properties["traceparent"] for one in self.stored(self.a)}, {"00-1"})

    def test_hook_that_fails_is_logged_and_the_send_goes_on(self) -> None:
        producer = self.started(ProducerOptions(hooks=[Noting(fail=True)]))
        self.assertEqual(self.run_to_end(producer.send(Message("T", b"x"))).status.name, "SEND_OK")
        self.assertEqual(len(self.flushLoggedErrors(ValueError)), 2)
