"""Send and consume from many threads, by one producer and one consumer.

$ python threads.py
100 sent, 100 consumed
"""

from concurrent.futures import ThreadPoolExecutor

from twisted_mq.blocking import Message, Producer, PushConsumer

TOPIC = "ThreadOrders"


def consume(consumer: PushConsumer) -> int:
    count = 0
    for message in consumer.messages(timeout=3):
        message.ack()
        count += 1
    return count


with ThreadPoolExecutor(8) as pool, Producer(group="shop") as producer:
    sent = list(pool.map(producer.send, [Message(TOPIC, b"%d" % number) for number in range(100)]))
    with PushConsumer(group="audit", topics={TOPIC: "*"}) as consumer:
        consumed = sum(pool.map(consume, [consumer] * 4))
print(f"{len(sent)} sent, {consumed} consumed")
