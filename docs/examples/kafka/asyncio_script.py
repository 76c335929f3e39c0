"""Send and consume with asyncio, with aiokafka."""

import asyncio

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

SERVERS = "localhost:9092"


async def main() -> None:
    async with AIOKafkaProducer(bootstrap_servers=SERVERS) as producer:
        print((await producer.send_and_wait("AsyncOrders", b"a chair")).offset)

    async with AIOKafkaConsumer(
        "AsyncOrders",
        bootstrap_servers=SERVERS,
        group_id="audit",
        auto_offset_reset="earliest",
        enable_auto_commit=False,
    ) as consumer:
        async for message in consumer:
            print(message.value)
            await consumer.commit()
            break


asyncio.run(main())
