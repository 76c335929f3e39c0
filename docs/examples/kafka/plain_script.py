"""Send and consume in plain calls, with confluent-kafka."""

from confluent_kafka import Consumer, KafkaException, Producer

SERVERS = "localhost:9092"


def report(error, message):
    print("failed" if error else "stored")


producer = Producer({"bootstrap.servers": SERVERS})
producer.produce("PlainOrders", b"a chair", on_delivery=report)
producer.flush(10)

consumer = Consumer(
    {"bootstrap.servers": SERVERS, "group.id": "audit", "auto.offset.reset": "earliest", "enable.auto.commit": False}
)
consumer.subscribe(["PlainOrders"])
try:
    message = consumer.poll(10)
    if message is not None:
        if message.error():
            raise KafkaException(message.error())
        print(message.value())
        consumer.commit(message, asynchronous=False)
finally:
    consumer.close()
