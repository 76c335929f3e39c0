"""Test asyncio code with pytest-asyncio.

$ pytest test_with_asyncio.py
...1 passed...
"""

import pytest

from twisted_mq.aio import Message, Producer
from twisted_mq.testing import EmbeddedServer


@pytest.mark.asyncio
async def test_a_sent_message_is_stored(mq_server: EmbeddedServer, mq_topic: str) -> None:
    async with Producer(mq_server.namesrv, group="shop") as producer:
        await producer.send(Message(mq_topic, b"a chair"))
    assert [message.body for message in mq_server.messages(mq_topic)] == [b"a chair"]
