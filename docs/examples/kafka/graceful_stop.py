"""Stop on SIGTERM: finish the message that is open, commit, leave the group, exit with 0, with aiokafka."""

import asyncio
import os
import signal

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

SERVERS, TOPIC = "localhost:9092", "StoppedOrders"


async def work(consumer: AIOKafkaConsumer, stop: asyncio.Event) -> None:
    while not stop.is_set():
        for messages in (await consumer.getmany(timeout_ms=500, max_records=1)).values():
            for message in messages:
                print("began", message.value)
                os.kill(os.getpid(), signal.SIGTERM)
                await asyncio.sleep(0.1)
                await consumer.commit()
                print("finished", message.value)


async def main() -> None:
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    async with AIOKafkaProducer(bootstrap_servers=SERVERS) as producer:
        await producer.send_and_wait(TOPIC, b"order-7")

    async with AIOKafkaConsumer(
        TOPIC, bootstrap_servers=SERVERS, group_id="audit", auto_offset_reset="earliest", enable_auto_commit=False
    ) as consumer:
        await work(consumer, stop)
    print("stopped")


asyncio.run(main())
