"""Poll messages in batches and commit after the database has them.

$ python batches_to_sqlite.py
100 rows
"""

import sqlite3

from twisted_mq.blocking import ConsumeFromWhere, ConsumerOptions, LitePullConsumer, Message, Producer

TOPIC = "Readings"
OPTIONS = ConsumerOptions(consume_from_where=ConsumeFromWhere.FIRST_OFFSET)
database = sqlite3.connect(":memory:")
database.execute("CREATE TABLE readings (id TEXT PRIMARY KEY, body BLOB)")

with Producer(group="meters") as producer:
    producer.send_batch([Message(TOPIC, b"%d" % number) for number in range(100)])

consumer = LitePullConsumer(group="lake", options=OPTIONS, auto_commit=False)
consumer.subscribe(TOPIC)
rows = 0
with consumer:
    while rows < 100:
        batch = consumer.poll(timeout=5)
        with database:
            entries = [(message.unique_key, message.body) for message in batch]
            database.executemany("INSERT OR IGNORE INTO readings VALUES (?, ?)", entries)
        consumer.commit()
        (rows,) = database.execute("SELECT count(*) FROM readings").fetchone()
print(rows, "rows")
