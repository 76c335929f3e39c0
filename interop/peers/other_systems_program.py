"""Fills topics of Kafka and queues of RabbitMQ, with their clients for Python; run in the clients' environment.

python other_systems_program.py kafka ADDRESS TOPIC PARTITIONS COUNT
python other_systems_program.py committed ADDRESS TOPIC GROUP
python other_systems_program.py rabbit URL QUEUE COUNT
python other_systems_program.py left URL QUEUE

Message N of Kafka has the key "key-N", the header size=N and is in partition N modulo PARTITIONS. `committed` prints the sum of
a group's committed offsets, `left` the number of messages in a queue.
"""

from __future__ import annotations

import sys
from typing import Any


def kafka(address: str, topic: str, partitions: str, count: str) -> None:
    from kafka import KafkaProducer
    from kafka.admin import KafkaAdminClient, NewTopic

    admin = KafkaAdminClient(bootstrap_servers=address)
    admin.create_topics([NewTopic(topic, int(partitions), 1)])
    admin.close()
    producer = KafkaProducer(bootstrap_servers=address, acks="all")
    sent = [
        producer.send(topic, b"%d" % number, b"key-%d" % number, [("size", b"%d" % number)], number % int(partitions))
        for number in range(int(count))
    ]
    for one in sent:
        one.get(60)
    producer.close()


def committed(address: str, topic: str, group: str) -> None:
    from kafka import KafkaConsumer, TopicPartition

    consumer = KafkaConsumer(bootstrap_servers=address, group_id=group, enable_auto_commit=False)
    partitions = consumer.partitions_for_topic(topic) or ()
    print(sum(consumer.committed(TopicPartition(topic, one)) or 0 for one in partitions))
    consumer.close(autocommit=False)


def _channel(url: str) -> Any:
    import pika

    return pika.BlockingConnection(pika.URLParameters(url)).channel()


def rabbit(url: str, queue: str, count: str) -> None:
    import pika

    channel = _channel(url)
    channel.queue_declare(queue, durable=True)
    channel.confirm_delivery()
    for number in range(int(count)):
        properties = pika.BasicProperties(
            headers={"size": number}, message_id=f"key-{number}", content_type="text/plain", delivery_mode=2
        )
        channel.basic_publish("", queue, b"%d" % number, properties)
    channel.connection.close()


def left(url: str, queue: str) -> None:
    print(_channel(url).queue_declare(queue, durable=True, passive=True).method.message_count)


COMMANDS = {one.__name__: one for one in (kafka, committed, rabbit, left)}

if __name__ == "__main__":
    COMMANDS[sys.argv[1]](*sys.argv[2:])
