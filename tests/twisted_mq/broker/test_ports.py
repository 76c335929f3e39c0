"""The ports of a broker on loopback: free ones, the fast one, busy ones."""

from __future__ import annotations

import socket

from twisted.internet import reactor

from tests.twisted_mq.broker.test_broker_service import SEND, BrokerServiceCase, free_ports
from twisted_mq.broker.service import make_broker
from twisted_mq.remoting.listen import PortError


class PortsTest(BrokerServiceCase):
    async def test_port_0_takes_a_free_one_and_opens_no_fast_port(self) -> None:
        broker = await self.start()
        self.assertGreater(broker.port, 0)
        self.assertEqual(len(broker._ports.listening), 2)
        self.assertEqual((await self.ask(broker.port, 310, SEND, b"x")).code, 0)

    async def test_the_port_two_below_serves_the_same_broker(self) -> None:
        broker = await self.start(listen_port=free_ports())
        self.assertEqual((await self.ask(broker.port - 2, 310, SEND, b"x")).ext_fields["queueOffset"], "0")
        self.assertEqual((await self.ask(broker.port, 310, SEND, b"x")).ext_fields["queueOffset"], "1")

    async def test_a_busy_fast_port_is_a_warning(self) -> None:
        port = free_ports()
        with socket.create_server(("127.0.0.1", port - 2)):
            broker = await self.start(listen_port=port)
            self.assertEqual((await self.ask(port, 310, SEND, b"x")).code, 0)
            warning = f"no fast port, clients with vipChannelEnabled use the main one: port {port - 2}"
            self.assertEqual(len(self.said(warning)), 1)
            await broker.stopService()

    async def test_a_busy_port_is_named_and_nothing_stays_open(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as holder:
            port = holder.getsockname()[1]
            broker = make_broker(self.options(listen_port=port, ha_listen_port=free_ports()), reactor)
            error = self.assertRaises(PortError, broker.startService)
            self.assertIn(f"port {port} on 127.0.0.1 is in use", str(error))
        await self.start()
