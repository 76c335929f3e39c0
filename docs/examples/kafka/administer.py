"""Make a topic, watch the lag of a group, and reset its offsets, with confluent-kafka."""

from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec

SERVERS, TOPIC, GROUP = "localhost:9092", "ManagedOrders", "managed"
admin = AdminClient({"bootstrap.servers": SERVERS})
PARTITIONS = [TopicPartition(TOPIC, number) for number in range(2)]


def ends():
    found = admin.list_offsets({partition: OffsetSpec.latest() for partition in PARTITIONS})
    return {partition.partition: future.result().offset for partition, future in found.items()}


def committed():
    (future,) = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(GROUP, PARTITIONS)]).values()
    return {one.partition: max(one.offset, 0) for one in future.result().topic_partitions}


def waiting():
    places = committed()
    return sum(end - places[number] for number, end in ends().items())


def send(body):
    producer.produce(TOPIC, body)
    producer.flush(10)


for future in admin.create_topics([NewTopic(TOPIC, 2, 1)]).values():
    future.result()
producer = Producer({"bootstrap.servers": SERVERS})
consumer = Consumer(
    {"bootstrap.servers": SERVERS, "group.id": GROUP, "auto.offset.reset": "earliest", "enable.auto.commit": False}
)
consumer.subscribe([TOPIC])
send(b"first")
message = consumer.poll(10)
if message is None or message.error():
    raise KafkaException(message and message.error())
consumer.commit(message, asynchronous=False)
consumer.close()
for number in range(3):
    send(b"%d" % number)
print(waiting(), "waiting")

moved = [TopicPartition(TOPIC, number, end) for number, end in ends().items()]
(future,) = admin.alter_consumer_group_offsets([ConsumerGroupTopicPartitions(GROUP, moved)]).values()
future.result()
print(waiting(), "waiting")
