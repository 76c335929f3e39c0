"""Run jobs later. The broker keeps each message until its time.

$ python delayed_jobs.py
first b'soon'
then b'later'
"""

from datetime import UTC, datetime, timedelta

from twisted_mq.blocking import Message, Producer, PushConsumer

TOPIC = "DelayedJobs"

with Producer(group="shop") as producer:
    producer.send(Message(TOPIC, b"later", deliver_time=datetime.now(UTC) + timedelta(seconds=3)))
    producer.send(Message(TOPIC, b"soon", delay_time_seconds=1))

with PushConsumer(group="jobs", topics={TOPIC: "*"}) as consumer:
    messages = consumer.messages(timeout=10)
    for word in ("first", "then"):
        message = next(messages)
        print(word, message.body)
        message.ack()
