"""A broker on a released configuration and a store, and what asks it."""

from __future__ import annotations

from pathlib import Path

from twisted.internet import reactor

from twisted_mq.broker.options import BrokerOptions
from twisted_mq.broker.service import BrokerService, make_broker
from twisted_mq.config.options import load_options
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.remoting.client import RemotingClient

HERE = Path(__file__).parent


async def started(config: Path, store: Path) -> BrokerService:
    """Up, with the file's settings."""
    broker = make_broker(load_options(BrokerOptions, str(config), {"storePathRootDir": str(store)}), reactor)
    broker.startService()
    await broker.started
    return broker


class Asked:
    """Requests to one broker; an answer that is no success is an error."""

    def __init__(self, broker: BrokerService) -> None:
        self._client = RemotingClient(reactor)
        self._address = f"127.0.0.1:{broker.port}"

    async def ask(self, code: int, fields: dict[str, str], body: bytes = b"") -> RemotingCommand:
        answer = await self._client.invoke(self._address, RemotingCommand.request(code, fields, body), 30.0)
        assert answer.code == 0, (code, answer.code, answer.remark)
        return answer

    async def send(self, topic: str, queue_id: int, body: str, **properties: str) -> RemotingCommand:
        text = "".join(f"{name}\x01{value}\x02" for name, value in properties.items())
        fields = {"a": "P", "b": topic, "c": "TBW102", "d": "4", "e": str(queue_id), "f": "0", "g": "1795217217000",
                  "h": "0", "i": text, "j": "0", "k": "false", "m": "false"}  # fmt: skip
        return await self.ask(310, fields, body.encode())

    async def close(self) -> None:
        await self._client.close()
