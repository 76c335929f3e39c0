"""Test with pytest. The fixtures come with the package, and the broker runs in the test's process.

$ pytest test_with_pytest.py
...1 passed...
"""

from twisted_mq.blocking import Message, Producer, PushConsumer


def test_a_sent_message_is_received(mq_topic: str, mq_producer: Producer, mq_consumer: PushConsumer) -> None:
    mq_producer.send(Message(mq_topic, b"a chair"))
    message = next(mq_consumer.messages(timeout=10))
    assert message.body == b"a chair"
    message.ack()
