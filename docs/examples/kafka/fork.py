"""Send from forked processes, with confluent-kafka. The parent's producer must not be used in a child; nothing says so."""

import multiprocessing

from confluent_kafka import Producer

SERVERS = "localhost:9092"


def report(error, message):
    print("failed" if error else "stored", flush=True)


def work():
    producer = Producer({"bootstrap.servers": SERVERS})
    producer.produce("ForkOrders", b"from the child", on_delivery=report)
    producer.flush(10)


producer = Producer({"bootstrap.servers": SERVERS})
producer.produce("ForkOrders", b"from the parent")
producer.flush(10)
child = multiprocessing.get_context("fork").Process(target=work)
child.start()
child.join()
