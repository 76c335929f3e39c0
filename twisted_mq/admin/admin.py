"""Administration of a cluster with Deferreds. The asyncio and the blocking `Admin` call this one.

admin = Admin(reactor, "127.0.0.1:9876")
await admin.start()
await admin.create_topic("Orders", queues=4)
await admin.stop()
"""

from __future__ import annotations

from twisted_mq.admin.cluster_admin import ClusterAdmin
from twisted_mq.admin.group_admin import GroupAdmin
from twisted_mq.admin.message_admin import MessageAdmin
from twisted_mq.admin.offset_admin import OffsetAdmin
from twisted_mq.admin.topic_admin import TopicAdmin


class Admin(TopicAdmin, GroupAdmin, OffsetAdmin, MessageAdmin, ClusterAdmin):
    """Queries and changes the servers of one cluster. Every method returns a Deferred.

    All methods raise NameServerUnreachable (no name server answers), BrokerError (a broker refuses), RemotingError (a
    broker does not answer within 5 s) and ClientStateError (before `start`, after `stop`). Each names its further errors.
    """
