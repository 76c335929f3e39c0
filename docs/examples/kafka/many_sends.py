"""Keep many sends on their way from one thread, with confluent-kafka."""

from confluent_kafka import Producer

stored, failed = [], []


def report(error, message):
    (failed if error else stored).append(message)


producer = Producer({"bootstrap.servers": "localhost:9092"})
for number in range(1000):
    while True:
        try:
            producer.produce("ManyReadings", b"%d" % number, on_delivery=report)
            break
        except BufferError:
            producer.poll(0.1)
    producer.poll(0)
producer.flush(10)
if failed:
    raise SystemExit(f"{len(failed)} failed")
print(len(stored), "stored")
