"""Cancel a consuming task, with aiokafka. What was not committed comes again."""

import asyncio

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

SERVERS, TOPIC = "localhost:9092", "CancelledOrders"
OPTIONS = {
    "bootstrap_servers": SERVERS,
    "group_id": "audit",
    "auto_offset_reset": "earliest",
    "enable_auto_commit": False,
}


async def work(consumer: AIOKafkaConsumer, begun: asyncio.Event) -> None:
    async for message in consumer:
        begun.set()
        try:
            await asyncio.sleep(3600)
            await consumer.commit()
        except asyncio.CancelledError:
            print("cancelled with", message.value, "open")
            raise


async def main() -> None:
    async with AIOKafkaProducer(bootstrap_servers=SERVERS) as producer:
        await producer.send_and_wait(TOPIC, b"slow")

    begun = asyncio.Event()
    async with AIOKafkaConsumer(TOPIC, **OPTIONS) as consumer:
        task = asyncio.create_task(work(consumer, begun))
        await begun.wait()
        task.cancel()
        await asyncio.wait([task])

    async with AIOKafkaConsumer(TOPIC, **OPTIONS) as consumer:
        async for message in consumer:
            print("again:", message.value)
            await consumer.commit()
            break


asyncio.run(main())
