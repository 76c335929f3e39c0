"""Stop on SIGTERM: finish the message that is open, commit, leave the group, exit with 0.

$ python graceful_stop.py
began b'order-7'
finished b'order-7'
stopped
"""

import asyncio
import os
import signal

from twisted_mq.aio import Message, Producer, PushConsumer

TOPIC = "StoppedOrders"


async def work(consumer: PushConsumer) -> None:
    async for message in consumer:  # ends when the consumer stops
        print("began", message.body)
        os.kill(os.getpid(), signal.SIGTERM)  # as `docker stop` and Kubernetes do
        await asyncio.sleep(0.1)
        await message.ack()
        print("finished", message.body)


async def main() -> None:
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    async with Producer(group="shop") as producer:
        await producer.send(Message(TOPIC, b"order-7"))

    async with PushConsumer(group="audit", topics={TOPIC: "*"}) as consumer:
        working = asyncio.create_task(work(consumer))
        await stop.wait()
    await working
    print("stopped")


asyncio.run(main())
