"""Process each order once, although its message comes twice, with confluent-kafka."""

import sqlite3

from confluent_kafka import Consumer, KafkaException, Producer

SERVERS, TOPIC = "localhost:9092", "TwiceOrders"
database = sqlite3.connect(":memory:")
database.execute("CREATE TABLE charges (number TEXT PRIMARY KEY)")

producer = Producer({"bootstrap.servers": SERVERS})
for _ in range(2):
    producer.produce(TOPIC, b"a chair", key="order-7")
producer.flush(10)

consumer = Consumer(
    {"bootstrap.servers": SERVERS, "group.id": "charge", "auto.offset.reset": "earliest", "enable.auto.commit": False}
)
consumer.subscribe([TOPIC])
try:
    for _ in range(2):
        message = consumer.poll(10)
        if message is None:
            break
        if message.error():
            raise KafkaException(message.error())
        number = message.key().decode()
        with database:
            added = database.execute("INSERT OR IGNORE INTO charges VALUES (?)", [number]).rowcount
            print("charged" if added else "seen before:", number)
        consumer.commit(message, asynchronous=False)
finally:
    consumer.close()
