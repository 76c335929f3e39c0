"""Celery beside RocketMQ: a consumer starts a Celery task for each message.

    $ python celery_beside.py
    charged order-7

Here Celery runs the task at once, in the same process. With a Celery broker and workers, leave out that setting.
"""

from celery import Celery

from twisted_mq.blocking import Message, Producer, PushConsumer

tasks = Celery("shop", broker="memory://")
tasks.conf.task_always_eager = True


def charge_order(number: str) -> None:
    print("charged", number)


charge = tasks.task(charge_order)

with Producer(group="shop") as producer:
    producer.send(Message("CeleryOrders", b"order-7"))

with PushConsumer(group="charge", topics={"CeleryOrders": "*"}) as consumer:
    for message in consumer.messages(timeout=10):
        charge.delay(message.body.decode())  # raises if Celery does not take it, and the message comes again
        message.ack()
        break
