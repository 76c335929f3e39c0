"""Celery beside Kafka: a consumer starts a Celery task for each message, with confluent-kafka."""

from celery import Celery
from confluent_kafka import Consumer, KafkaException, Producer

SERVERS = "localhost:9092"
tasks = Celery("shop", broker="memory://")
tasks.conf.task_always_eager = True


def charge_order(number):
    print("charged", number)


charge = tasks.task(charge_order)

producer = Producer({"bootstrap.servers": SERVERS})
producer.produce("CeleryOrders", b"order-7")
producer.flush(10)

consumer = Consumer(
    {"bootstrap.servers": SERVERS, "group.id": "charge", "auto.offset.reset": "earliest", "enable.auto.commit": False}
)
consumer.subscribe(["CeleryOrders"])
try:
    message = consumer.poll(10)
    if message is not None:
        if message.error():
            raise KafkaException(message.error())
        charge.delay(message.value().decode())
        consumer.commit(message, asynchronous=False)
finally:
    consumer.close()
