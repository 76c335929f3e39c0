"""Cancel a consuming task. The message that it had open stays in its queue and comes again.

$ python cancellation.py
cancelled with b'slow' open
again: b'slow'
"""

import asyncio

from twisted_mq.aio import Message, Producer, PushConsumer

TOPIC = "CancelledOrders"


async def work(consumer: PushConsumer, begun: asyncio.Event) -> None:
    async for message in consumer:
        begun.set()
        try:
            await asyncio.sleep(3600)
            await message.ack()
        except asyncio.CancelledError:
            print("cancelled with", message.body, "open")
            raise


async def main() -> None:
    async with Producer(group="shop") as producer:
        await producer.send(Message(TOPIC, b"slow"))

    begun = asyncio.Event()
    async with PushConsumer(group="audit", topics={TOPIC: "*"}) as consumer:
        task = asyncio.create_task(work(consumer, begun))
        await begun.wait()
        task.cancel()
        await asyncio.wait([task])

    async with PushConsumer(group="audit", topics={TOPIC: "*"}) as consumer:
        async for message in consumer:
            print("again:", message.body)
            await message.ack()
            break


asyncio.run(main())
