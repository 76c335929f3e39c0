"""Send and consume with asyncio.

$ python asyncio_script.py
SEND_OK
b'a chair'
"""

import asyncio

from twisted_mq.aio import Message, Producer, PushConsumer


async def main() -> None:
    async with Producer(group="shop") as producer:
        print((await producer.send(Message("AsyncOrders", b"a chair"))).status.name)

    async with PushConsumer(group="audit", topics={"AsyncOrders": "*"}) as consumer:
        async for message in consumer:
            print(message.body)
            await message.ack()
            break


asyncio.run(main())
