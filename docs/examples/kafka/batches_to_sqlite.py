"""Poll messages in batches and commit after the database has them, with confluent-kafka."""

import sqlite3

from confluent_kafka import Consumer, KafkaException, Producer

SERVERS, TOPIC = "localhost:9092", "Readings"
database = sqlite3.connect(":memory:")
database.execute("CREATE TABLE readings (id TEXT PRIMARY KEY, body BLOB)")

producer = Producer({"bootstrap.servers": SERVERS})
for number in range(100):
    producer.produce(TOPIC, b"%d" % number)
producer.flush(10)

consumer = Consumer(
    {"bootstrap.servers": SERVERS, "group.id": "lake", "auto.offset.reset": "earliest", "enable.auto.commit": False}
)
consumer.subscribe([TOPIC])
rows = 0
try:
    while rows < 100:
        batch = consumer.consume(500, timeout=1)
        for message in batch:
            if message.error():
                raise KafkaException(message.error())
        with database:
            entries = [(f"{message.partition()}/{message.offset()}", message.value()) for message in batch]
            database.executemany("INSERT OR IGNORE INTO readings VALUES (?, ?)", entries)
        if batch:
            consumer.commit(asynchronous=False)
        (rows,) = database.execute("SELECT count(*) FROM readings").fetchone()
finally:
    consumer.close()
print(rows, "rows")
