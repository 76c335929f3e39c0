"""Send and consume from many threads, with confluent-kafka. One consumer is used by one thread only."""

from concurrent.futures import Future, ThreadPoolExecutor
from threading import Event, Thread

from confluent_kafka import Consumer, KafkaException, Producer

SERVERS, TOPIC = "localhost:9092", "ThreadOrders"
producer = Producer({"bootstrap.servers": SERVERS})
done = Event()


def poll_reports():
    while not done.is_set():
        producer.poll(0.1)


def send(body):
    stored = Future()

    def report(error, message):
        if error:
            stored.set_exception(KafkaException(error))
        else:
            stored.set_result(message.offset())

    producer.produce(TOPIC, body, on_delivery=report)
    return stored.result(timeout=10)


def consume(_):
    count = 0
    consumer = Consumer(
        {
            "bootstrap.servers": SERVERS,
            "group.id": "audit",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    consumer.subscribe([TOPIC])
    try:
        while (message := consumer.poll(3)) is not None:
            if message.error():
                raise KafkaException(message.error())
            consumer.commit(message, asynchronous=False)
            count += 1
    finally:
        consumer.close()
    return count


poller = Thread(target=poll_reports)
poller.start()
with ThreadPoolExecutor(8) as pool:
    sent = list(pool.map(send, [b"%d" % number for number in range(100)]))
    consumed = sum(pool.map(consume, range(4)))
done.set()
poller.join()
print(f"{len(sent)} sent, {consumed} consumed")
