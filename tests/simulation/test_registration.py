"""Name servers that have not noticed the end of a broker's last process show the topics of its next one."""

from __future__ import annotations

from tests.simulation.nodes import BrokerNode, NameServerNode
from tests.simulation.world import World
from twisted_mq.protocol.flags import PERM_READ, PERM_READ_WRITE
from twisted_mq.protocol.names.system_topics import SELF_TEST_TOPIC


def test_a_name_server_that_did_not_notice_a_power_cut_shows_what_the_next_process_does() -> None:
    """The topics on disk and their version are the same; what is shown of them is not (seed 37101)."""
    with World(1) as world:
        server = NameServerNode(world, "10.0.0.1")
        broker = BrokerNode(world, "10.0.1.1", broker_name="broker-a", namesrv_addr=server.address)
        for node in (server, broker):
            node.start()
        world.run(5.0)
        assert server._permission(broker, SELF_TEST_TOPIC) == PERM_READ_WRITE
        before = broker.service.controller.topics.data_version
        broker.cut_power()
        broker.options["broker_permission"] = PERM_READ
        broker.start()
        world.run(5.0)
        assert broker.service.controller.topics.data_version == before
        assert server._permission(broker, SELF_TEST_TOPIC) == PERM_READ
        broker.free_lock()
