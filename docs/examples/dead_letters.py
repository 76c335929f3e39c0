"""Give up on a message, look at the dead letters, and send them again.

$ python dead_letters.py
gave up on b'broken'
dead: b'broken'
sent again: 1
consumed b'broken'
"""

import time

from twisted_mq.blocking import Admin, Message, Producer, PushConsumer

TOPIC, GROUP = "FragileOrders", "fragile"

with Producer(group="shop") as producer:
    producer.send(Message(TOPIC, b"broken"))

with PushConsumer(group=GROUP, topics={TOPIC: "*"}) as consumer, Admin() as admin:
    messages = consumer.messages(timeout=10)
    message = next(messages)
    print("gave up on", message.body)
    message.retry(delay_level=-1)  # no level sends it back at growing intervals, and gives up after 16 tries

    while not (dead := admin.dead_letters(GROUP)):
        time.sleep(0.1)
    print("dead:", dead[0].body)
    print("sent again:", len(admin.resend_dead_letters(GROUP)))

    message = next(messages)
    print("consumed", message.body)
    message.ack()
