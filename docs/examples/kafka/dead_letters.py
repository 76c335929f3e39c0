"""Give up on a message, look at the dead letters, and send them again, with confluent-kafka and a topic of its own."""

from confluent_kafka import Consumer, KafkaException, Producer

SERVERS, TOPIC, GROUP = "localhost:9092", "FragileOrders", "fragile"
DEAD = f"{TOPIC}.{GROUP}.dead"
producer = Producer({"bootstrap.servers": SERVERS})


def send(topic, value, headers=()):
    def report(error, message):
        if error:
            raise KafkaException(error)

    producer.produce(topic, value, headers=list(headers), on_delivery=report)
    producer.flush(10)


def consumer_of(topic, group):
    made = Consumer(
        {"bootstrap.servers": SERVERS, "group.id": group, "auto.offset.reset": "earliest", "enable.auto.commit": False}
    )
    made.subscribe([topic])
    return made


def take(consumer):
    message = consumer.poll(10)
    if message is not None and message.error():
        raise KafkaException(message.error())
    return message


send(TOPIC, b"broken")

consumer = consumer_of(TOPIC, GROUP)
message = take(consumer)
print("gave up on", message.value())
send(DEAD, message.value(), [("origin", TOPIC.encode()), ("offset", b"%d" % message.offset())])
consumer.commit(message, asynchronous=False)

replay = consumer_of(DEAD, f"{GROUP}-replay")
count = 0
while (letter := take(replay)) is not None:
    print("dead:", letter.value())
    send(dict(letter.headers())["origin"].decode(), letter.value())
    replay.commit(letter, asynchronous=False)
    count += 1
replay.close()
print("sent again:", count)

message = take(consumer)
print("consumed", message.value())
consumer.commit(message, asynchronous=False)
consumer.close()
