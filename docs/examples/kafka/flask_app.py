"""A Flask application that sends, with confluent-kafka."""

from concurrent.futures import Future
from functools import cache

from confluent_kafka import KafkaException, Producer
from flask import Flask

app = Flask(__name__)


@cache
def producer():
    return Producer({"bootstrap.servers": "localhost:9092"})


@app.post("/orders/<int:number>")
def order(number: int):
    stored = Future()

    def report(error, message):
        if error:
            stored.set_exception(KafkaException(error))
        else:
            stored.set_result(message.offset())

    producer().produce("FlaskOrders", b"%d" % number, on_delivery=report)
    producer().flush(3)
    return {"offset": stored.result(timeout=0)}


if __name__ == "__main__":
    print(app.test_client().post("/orders/7").get_json())
