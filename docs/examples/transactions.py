"""Book a room in a database and announce it, both or neither.

    $ python transactions.py
    COMMIT room 12
    ROLLBACK room 12
    announced: 1

If the program dies before it has decided, the broker asks another producer of the group, whose `check` looks into the database.
"""

import sqlite3

from twisted_mq.blocking import Message, MessageExt, PushConsumer, TransactionProducer, TransactionState

database = sqlite3.connect(":memory:", check_same_thread=False, isolation_level=None)
database.execute("CREATE TABLE bookings (room TEXT PRIMARY KEY)")


def book(message: Message) -> TransactionState:
    try:
        database.execute("INSERT INTO bookings VALUES (?)", [message.keys[0]])
    except sqlite3.IntegrityError:
        return TransactionState.ROLLBACK
    return TransactionState.COMMIT


def was_booked(message: MessageExt) -> TransactionState:
    found = database.execute("SELECT 1 FROM bookings WHERE room = ?", [message.keys[0]]).fetchone()
    return TransactionState.COMMIT if found else TransactionState.ROLLBACK


with TransactionProducer(group="bookings", check=was_booked) as producer:
    for _ in range(2):
        result = producer.send_in_transaction(Message("Bookings", b"room 12", keys="room 12"), book)
        print(result.state.name, "room 12")

with PushConsumer(group="announce", topics={"Bookings": "*"}, auto_ack=True) as consumer:
    print("announced:", len(list(consumer.messages(timeout=3))))
