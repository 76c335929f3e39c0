"""Run jobs later, with confluent-kafka. Kafka does not delay: the consumer keeps messages in a table until their time."""

import sqlite3
import time

from confluent_kafka import Consumer, KafkaException, Producer

SERVERS, TOPIC = "localhost:9092", "DelayedJobs"
database = sqlite3.connect("jobs.db")
database.execute("CREATE TABLE IF NOT EXISTS jobs (place TEXT PRIMARY KEY, due REAL, body BLOB)")


def send(producer, body, due):
    producer.produce(TOPIC, body, headers=[("due", repr(due).encode())])


producer = Producer({"bootstrap.servers": SERVERS})
send(producer, b"later", time.time() + 3)
send(producer, b"soon", time.time() + 1)
producer.flush(10)

consumer = Consumer(
    {"bootstrap.servers": SERVERS, "group.id": "jobs", "auto.offset.reset": "earliest", "enable.auto.commit": False}
)
consumer.subscribe([TOPIC])
words = ["first", "then"]
try:
    while words:
        message = consumer.poll(0.1)
        if message is not None:
            if message.error():
                raise KafkaException(message.error())
            place = f"{message.partition()}/{message.offset()}"
            due = float(dict(message.headers())["due"])
            with database:
                database.execute("INSERT OR IGNORE INTO jobs VALUES (?, ?, ?)", [place, due, message.value()])
            consumer.commit(message, asynchronous=False)
        ready = database.execute("SELECT place, body FROM jobs WHERE due <= ? ORDER BY due", [time.time()]).fetchall()
        for place, body in ready:
            print(words.pop(0), body)
            with database:
                database.execute("DELETE FROM jobs WHERE place = ?", [place])
finally:
    consumer.close()
