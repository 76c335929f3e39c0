"""Send and consume in plain calls.

$ python plain_script.py
SEND_OK
b'a chair'
"""

from twisted_mq.blocking import Message, Producer, PushConsumer

with Producer(group="shop") as producer:
    print(producer.send(Message("PlainOrders", b"a chair")).status.name)

with PushConsumer(group="audit", topics={"PlainOrders": "*"}) as consumer:
    for message in consumer.messages(timeout=10):
        print(message.body)
        message.ack()
        break
