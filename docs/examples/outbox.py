"""The outbox pattern: store the order and its message in one database transaction; a relay sends what is there.

    $ python outbox.py
    relayed 2
    relayed 0

A relay that dies after a send sends that message again: its key tells consumers.
"""

import sqlite3

from twisted_mq.blocking import Message, Producer

database = sqlite3.connect(":memory:")
database.execute("CREATE TABLE orders (number TEXT)")
database.execute("CREATE TABLE outbox (number INTEGER PRIMARY KEY, topic TEXT, key TEXT, body BLOB)")


def place(number: str) -> None:
    with database:
        database.execute("INSERT INTO orders VALUES (?)", [number])
        database.execute("INSERT INTO outbox (topic, key, body) VALUES ('OutboxOrders', ?, ?)", [number, b"placed"])


def relay(producer: Producer) -> int:
    rows = database.execute("SELECT number, topic, key, body FROM outbox ORDER BY number").fetchall()
    for number, topic, key, body in rows:
        producer.send_by_key(Message(topic, body, keys=key), key)
        with database:
            database.execute("DELETE FROM outbox WHERE number = ?", [number])
    return len(rows)


place("order-1")
place("order-2")
with Producer(group="relay") as producer:
    print("relayed", relay(producer))
    print("relayed", relay(producer))
