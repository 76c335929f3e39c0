"""The common fields of requests that name a topic or a queue (Apache: org.apache.rocketmq.remoting.rpc)."""

from __future__ import annotations

import attrs
from attrs import field

from twisted_mq.protocol.headers.fields import boolean, text


@attrs.frozen(kw_only=True)
class RpcRequestHeader:
    """Fields that Apache's proxy adds for its own use: `ns` a namespace, `nsd` whether names carry it already, `bname`
    the broker meant, `oway` one-way.
    """

    ns: str | None = field(default=None, metadata=text("ns"))
    nsd: bool | None = field(default=None, metadata=boolean("nsd"))
    bname: str | None = field(default=None, metadata=text("bname"))
    oway: bool | None = field(default=None, metadata=boolean("oway"))


@attrs.frozen(kw_only=True)
class TopicRequestHeader(RpcRequestHeader):
    """`lo`: the topic is a logical (static) one."""

    lo: bool | None = field(default=None, metadata=boolean("lo"))


@attrs.frozen(kw_only=True)
class TopicQueueRequestHeader(TopicRequestHeader):
    """A request about one queue. Apache gives each class its own queueId."""
