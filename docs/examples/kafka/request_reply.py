"""Ask and wait for the answer, with aiokafka: a topic of replies, and a correlation id."""

import asyncio
import uuid

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

SERVERS, TOPIC, REPLIES = "localhost:9092", "Prices", "Prices.replies"


class Asker:
    def __init__(self, producer: AIOKafkaProducer) -> None:
        self.producer = producer
        self.waiting: dict[bytes, asyncio.Future[bytes]] = {}

    async def receive(self, consumer: AIOKafkaConsumer) -> None:
        async for message in consumer:
            future = self.waiting.pop(dict(message.headers)["id"], None)
            if future is not None and not future.done():
                future.set_result(message.value)

    async def request(self, body: bytes, timeout: float) -> bytes:
        key = uuid.uuid4().bytes
        self.waiting[key] = asyncio.get_running_loop().create_future()
        try:
            await self.producer.send_and_wait(TOPIC, body, headers=[("id", key)])
            return await asyncio.wait_for(self.waiting[key], timeout)
        finally:
            self.waiting.pop(key, None)


async def answer(consumer: AIOKafkaConsumer, producer: AIOKafkaProducer) -> None:
    async for message in consumer:
        await producer.send_and_wait(REPLIES, message.value + b": 40", headers=message.headers)
        await consumer.commit()


async def main() -> None:
    questions = AIOKafkaConsumer(
        TOPIC, bootstrap_servers=SERVERS, group_id="answerers", auto_offset_reset="earliest", enable_auto_commit=False
    )
    replies = AIOKafkaConsumer(REPLIES, bootstrap_servers=SERVERS, group_id=None, auto_offset_reset="latest")
    async with AIOKafkaProducer(bootstrap_servers=SERVERS) as producer, questions, replies:
        asker = Asker(producer)
        tasks = [asyncio.create_task(answer(questions, producer)), asyncio.create_task(asker.receive(replies))]
        print((await asker.request(b"a chair", timeout=30)).decode())
        for task in tasks:
            task.cancel()


asyncio.run(main())
