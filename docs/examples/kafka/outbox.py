"""The outbox pattern, with confluent-kafka."""

import sqlite3

from confluent_kafka import KafkaException, Producer

database = sqlite3.connect(":memory:", check_same_thread=False)
database.execute("CREATE TABLE orders (number TEXT)")
database.execute("CREATE TABLE outbox (number INTEGER PRIMARY KEY, topic TEXT, key TEXT, body BLOB)")


def place(number):
    with database:
        database.execute("INSERT INTO orders VALUES (?)", [number])
        database.execute("INSERT INTO outbox (topic, key, body) VALUES ('OutboxOrders', ?, ?)", [number, b"placed"])


def relay(producer):
    rows = database.execute("SELECT number, topic, key, body FROM outbox ORDER BY number").fetchall()
    for number, topic, key, body in rows:

        def report(error, message, number=number):
            if error:
                raise KafkaException(error)
            with database:
                database.execute("DELETE FROM outbox WHERE number = ?", [number])

        producer.produce(topic, body, key=key, on_delivery=report)
        producer.flush(10)
    return len(rows)


place("order-1")
place("order-2")
producer = Producer({"bootstrap.servers": "localhost:9092", "enable.idempotence": True})
print("relayed", relay(producer))
print("relayed", relay(producer))
