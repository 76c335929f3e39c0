"""Make a topic, watch the lag of a group, and look at a reset of its offsets before it happens.

$ python administer.py
3 waiting
would consume again: 0
0 waiting
"""

from twisted_mq.blocking import Admin, Message, Producer, PushConsumer

TOPIC, GROUP = "ManagedOrders", "managed"


def waiting(admin: Admin) -> int:
    return sum(queue.waiting or 0 for queue in admin.lag(GROUP, TOPIC))


with Admin() as admin, Producer(group="shop") as producer:
    admin.create_topic(TOPIC, queues=2)
    admin.create_group(GROUP)
    with PushConsumer(group=GROUP, topics={TOPIC: "*"}) as consumer:
        producer.send(Message(TOPIC, b"first"))
        next(consumer.messages(timeout=10)).ack()
    for number in range(3):
        producer.send(Message(TOPIC, b"%d" % number))
    print(waiting(admin), "waiting")

    moves = admin.reset_offsets(GROUP, TOPIC, to="latest")  # a preview
    print("would consume again:", sum(move.again for move in moves))
    admin.reset_offsets(GROUP, TOPIC, to="latest", preview=False)
    print(waiting(admin), "waiting")
