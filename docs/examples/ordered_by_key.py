"""Keep the steps of each order in their order.

$ python ordered_by_key.py
order-1 placed paid shipped
order-2 placed paid shipped
"""

from collections import defaultdict

from twisted_mq.blocking import Message, Producer, PushConsumer

TOPIC = "OrderSteps"
steps: dict[str, list[str]] = defaultdict(list)

with Producer(group="shop") as producer:
    for step in ("placed", "paid", "shipped"):
        for number in ("order-1", "order-2"):
            producer.send_by_key(Message(TOPIC, step.encode(), keys=number), number)

with PushConsumer(group="ledger", topics={TOPIC: "*"}, orderly=True) as consumer:
    messages = consumer.messages(timeout=10)
    for _ in range(6):
        message = next(messages)
        steps[message.keys[0]].append(message.body.decode())
        message.ack()
for number in sorted(steps):
    print(number, *steps[number])
