"""Keep many sends on their way from one thread.

$ python many_sends.py
1000 stored
"""

from twisted_mq.blocking import Message, Producer

with Producer(group="meters") as producer:
    pending = [producer.send_async(Message("ManyReadings", b"%d" % number)) for number in range(1000)]
    stored = [future.result() for future in pending]
print(len(stored), "stored")
