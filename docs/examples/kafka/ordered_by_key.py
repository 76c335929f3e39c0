"""Keep the steps of each order in their order, with confluent-kafka."""

from collections import defaultdict

from confluent_kafka import Consumer, KafkaException, Producer

SERVERS, TOPIC = "localhost:9092", "OrderSteps"
steps = defaultdict(list)

producer = Producer({"bootstrap.servers": SERVERS, "enable.idempotence": True})
for step in ("placed", "paid", "shipped"):
    for number in ("order-1", "order-2"):
        producer.produce(TOPIC, step.encode(), key=number)
producer.flush(10)

consumer = Consumer(
    {"bootstrap.servers": SERVERS, "group.id": "ledger", "auto.offset.reset": "earliest", "enable.auto.commit": False}
)
consumer.subscribe([TOPIC])
try:
    for _ in range(6):
        message = consumer.poll(10)
        if message is None:
            break
        if message.error():
            raise KafkaException(message.error())
        steps[message.key().decode()].append(message.value().decode())
        consumer.commit(message, asynchronous=False)
finally:
    consumer.close()
for number in sorted(steps):
    print(number, *steps[number])
