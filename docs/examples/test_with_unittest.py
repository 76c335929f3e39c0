"""Test with unittest, without pytest.

$ python -m unittest test_with_unittest
"""

import unittest

from twisted_mq.blocking import Message, Producer
from twisted_mq.testing import BrokerMixin


class OrdersTest(BrokerMixin, unittest.TestCase):
    def test_a_sent_message_is_stored(self) -> None:
        with Producer(self.mq_server.namesrv, group="shop") as producer:
            producer.send(Message(self.mq_topic, b"a chair"))
        self.assertEqual([message.body for message in self.mq_server.messages(self.mq_topic)], [b"a chair"])
