"""Book a room in a database and announce it, both or neither, with confluent-kafka.

Kafka's transactions join topics, not a database: the announcement goes into a table, and a relay sends what is there.
"""

import sqlite3

from confluent_kafka import Consumer, KafkaException, Producer

SERVERS = "localhost:9092"
database = sqlite3.connect(":memory:", check_same_thread=False, isolation_level=None)
database.execute("CREATE TABLE bookings (room TEXT PRIMARY KEY)")
database.execute("CREATE TABLE outbox (number INTEGER PRIMARY KEY, body BLOB)")
producer = Producer({"bootstrap.servers": SERVERS, "enable.idempotence": True})


def book(room):
    database.execute("BEGIN")
    try:
        database.execute("INSERT INTO bookings VALUES (?)", [room])
        database.execute("INSERT INTO outbox (body) VALUES (?)", [room.encode()])
        database.execute("COMMIT")
    except sqlite3.IntegrityError:
        database.execute("ROLLBACK")
        return False
    return True


def relay():
    for number, body in database.execute("SELECT number, body FROM outbox ORDER BY number").fetchall():

        def report(error, message, number=number):
            if error:
                raise KafkaException(error)
            database.execute("DELETE FROM outbox WHERE number = ?", [number])

        producer.produce("Bookings", body, on_delivery=report)
    producer.flush(10)


for _ in range(2):
    print("booked" if book("room 12") else "refused", "room 12")
relay()

count = 0
consumer = Consumer({"bootstrap.servers": SERVERS, "group.id": "announce", "auto.offset.reset": "earliest"})
consumer.subscribe(["Bookings"])
try:
    while (message := consumer.poll(3)) is not None:
        if message.error():
            raise KafkaException(message.error())
        count += 1
finally:
    consumer.close()
print("announced:", count)
