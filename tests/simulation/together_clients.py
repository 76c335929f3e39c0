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

KEYS = 3


class TogetherNode(ClientNode):
    """It hears of another head only when it asks for the route, each 30 s as Apache's, or more often."""

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
        for number in itertools.count(1):
            await self._rest(1.0, 8.0)
            if self.is_quiet:
                return
            sent = self.observer.sends_in_order(f"{self.name}.{self._lives}/{WHOLE}/{key}", WHOLE, number)
            message = Message(WHOLE, f"{sent} ".encode().ljust(self._source.randrange(30, 400), b"."))
            self.world.told("send", message=sent)
            while not await self._is_taken(message, sent, key):
                await self._rest(0.1, 2.0)

    async def _is_taken(self, message: Message, sent: str, key: str) -> bool:
        try:
            result = await self._producer.send_by_key(message, key)
        except EXPECTED_ERRORS as error:
            self.world.told("not-taken", message=sent, error=type(error).__name__)
            return False
        if result.status is not SendStatus.SEND_OK:
            self.world.told("not-taken", message=sent, status=result.status.name)
            return False
        self._told(sent, result)
        return True


class TogetherConsumingNode(TogetherNode, OrderlyNode):
    """Consumes in order, from wherever a broker says that it shall begin."""

    group = APACHES_GROUP
    topic = WHOLE

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        where = self._source.choice((ConsumeFromWhere.FIRST_OFFSET, ConsumeFromWhere.LAST_OFFSET))
        self.options = ConsumerOptions(consume_from_where=where)
