"""A FastAPI application that sends and consumes on its own event loop, with aiokafka."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from fastapi import FastAPI
from fastapi.testclient import TestClient

SERVERS = "localhost:9092"
shipped: list[bytes] = []


async def ship(consumer: AIOKafkaConsumer) -> None:
    async for message in consumer:
        shipped.append(message.value)
        await consumer.commit()


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncGenerator[None]:
    consumer = AIOKafkaConsumer("WebOrders", bootstrap_servers=SERVERS, group_id="ship", enable_auto_commit=False)
    async with AIOKafkaProducer(bootstrap_servers=SERVERS) as app.state.producer, consumer:
        shipping = asyncio.create_task(ship(consumer))
        yield
        shipping.cancel()


app = FastAPI(lifespan=lifespan)


@app.post("/orders/{number}")
async def order(number: int) -> dict[str, int]:
    result = await app.state.producer.send_and_wait("WebOrders", b"%d" % number)
    return {"offset": result.offset}


if __name__ == "__main__":
    with TestClient(app) as client:
        print(client.post("/orders/7").json())
