"""Ask and wait for the answer.

$ python request_reply.py
a chair: 40
"""

import asyncio

from twisted_mq.aio import Message, Producer, PushConsumer, reply_message

TOPIC = "Prices"


async def answer(consumer: PushConsumer, producer: Producer) -> None:
    async for message in consumer:
        await producer.send(reply_message(message, message.body + b": 40"))
        await message.ack()


async def main() -> None:
    async with Producer(group="askers") as producer, PushConsumer(group="answerers", topics={TOPIC: "*"}) as consumer:
        answering = asyncio.create_task(answer(consumer, producer))
        reply = await producer.request(Message(TOPIC, b"a chair"), timeout=30)
        print(reply.body.decode())
        answering.cancel()


asyncio.run(main())
