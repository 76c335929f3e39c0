"""Process each order once, although its message comes twice.

$ python idempotent_consumer.py
charged order-7
seen before: order-7
"""

import sqlite3

from twisted_mq.blocking import Message, Producer, PushConsumer

TOPIC = "TwiceOrders"
database = sqlite3.connect(":memory:")
database.execute("CREATE TABLE charges (number TEXT PRIMARY KEY)")

with Producer(group="shop") as producer:
    for _ in range(2):
        producer.send_by_key(Message(TOPIC, b"a chair", keys="order-7"), "order-7")

with PushConsumer(group="charge", topics={TOPIC: "*"}, orderly=True) as consumer:
    messages = consumer.messages(timeout=10)
    for _ in range(2):
        message = next(messages)
        number = message.keys[0]
        with database:  # what was done and that it was done, in one transaction
            added = database.execute("INSERT OR IGNORE INTO charges VALUES (?)", [number]).rowcount
            print("charged" if added else "seen before:", number)
        message.ack()
