"""Apache's clients of topics that are ordered as a whole: a producer with a selector, and an orderly consumer.

They know nothing of ordered groups, only routes: writable is the send list's head, readable the consume list's.
"""

from __future__ import annotations

import itertools
from typing import Any

from tests.simulation.clients import ClientNode, OrderlyNode
from tests.simulation.ordered_clients import LineNode
from tests.simulation.ordered_observer import APACHES_GROUP, WHOLE
from twisted_mq.client import ClientOptions, ConsumeFromWhere, ConsumerOptions, Message, Producer, SendStatus
from twisted_mq.client.core.errors import EXPECTED_ERRORS
from twisted_mq.client.producing.producer import select_by_hash

KEYS = 3


class TogetherNode(ClientNode):
    """A client that learns of another head only from the route, each 30 s like Apache's, or more often."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._client_options = ClientOptions(poll_name_server_seconds=self._source.choice((1.0, 30.0)))

    @property
    def settings(self) -> dict[str, Any]:
        return {**super().settings, "client_options": self._client_options}


class TogetherProducingNode(TogetherNode, LineNode):
    """Sends the messages of a key one after the other, each again until it is acknowledged; a key's line is in one queue."""

    async def _work(self) -> None:
        self._producer = Producer(self.host, "plain-producers", **self.settings)
        await self._producer.start()
        for number in range(KEYS):
            self._run(self._send_all(f"key-{number}"))

    async def _send_all(self, key: str) -> None:
        made = itertools.count(1)
        while True:
            await self._rest(1.0, 8.0)
            if self.is_quiet:
                return
            names = [self._next(key, next(made)) for _ in range(self._source.choice((1, 1, 1, 3)))]
            messages = [self._message(name) for name in names]
            while not await self._are_taken(messages, names, key):
                await self._rest(0.1, 2.0)

    def _next(self, key: str, number: int) -> str:
        sent = self.observer.sends_in_order(f"{self.name}.{self._lives}/{WHOLE}/{key}", WHOLE, number)
        self.world.told("send", message=sent)
        return sent

    def _message(self, name: str) -> Message:
        return Message(WHOLE, f"{name} ".encode().ljust(self._source.randrange(30, 400), b"."))

    async def _are_taken(self, messages: list[Message], names: list[str], key: str) -> bool:
        """Several go as one batch, to the queue of their key."""
        try:
            if len(messages) == 1:
                result = await self._producer.send_by_key(messages[0], key)
            else:
                queues = await self._producer.publish_queues(WHOLE)
                result = await self._producer.send_batch(messages, select_by_hash(queues, messages[0], key))
        except EXPECTED_ERRORS as error:
            self.world.told("not-taken", message=names[0], error=type(error).__name__)
            return False
        if result.status is not SendStatus.SEND_OK:
            self.world.told("not-taken", message=names[0], status=result.status.name)
            return False
        for number, name in enumerate(names):
            self._told(name, result, number)
        return True


class TogetherConsumingNode(TogetherNode, OrderlyNode):
    """Consumes in order, from wherever a broker says that it shall begin."""

    group = APACHES_GROUP
    topic = WHOLE

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        where = self._source.choice((ConsumeFromWhere.FIRST_OFFSET, ConsumeFromWhere.LAST_OFFSET))
        self.options = ConsumerOptions(consume_from_where=where)
