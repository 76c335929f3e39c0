"""A FastAPI application that sends and consumes on its own event loop.

    $ python fastapi_app.py
    {'stored': 'SEND_OK'}

Serve it with `uvicorn fastapi_app:app`.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from fastapi import FastAPI
from fastapi.testclient import TestClient

from twisted_mq.aio import Message, Producer, PushConsumer

shipped: list[bytes] = []


async def ship(consumer: PushConsumer) -> None:
    async for message in consumer:
        shipped.append(message.body)
        await message.ack()


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncGenerator[None]:
    topics = {"WebOrders": "*"}
    async with Producer(group="web") as app.state.producer, PushConsumer(group="ship", topics=topics) as consumer:
        shipping = asyncio.create_task(ship(consumer))
        yield
        shipping.cancel()


app = FastAPI(lifespan=lifespan)


@app.post("/orders/{number}")
async def order(number: int) -> dict[str, str]:
    result = await app.state.producer.send(Message("WebOrders", b"%d" % number))
    return {"stored": result.status.name}


if __name__ == "__main__":
    with TestClient(app) as client:
        print(client.post("/orders/7").json())
