"""The coordinator that an address names."""

from __future__ import annotations

from weakref import WeakKeyDictionary

from twisted.internet import interfaces

from twisted_mq.coordination.interfaces import ICoordinator
from twisted_mq.coordination.memory import MemoryEnsemble
from twisted_mq.coordination.settings import CoordinatorSettings, boot_seconds
from twisted_mq.extras import require

_ensembles: WeakKeyDictionary[interfaces.IReactorTime, MemoryEnsemble] = WeakKeyDictionary()


def ensemble_of(reactor: interfaces.IReactorTime) -> MemoryEnsemble:
    """The tree of this process that the address `memory` names, made at its first use: one for each reactor."""
    if reactor not in _ensembles:
        _ensembles[reactor] = MemoryEnsemble(reactor, monotonic=boot_seconds)
    return _ensembles[reactor]


def coordinator_for(settings: CoordinatorSettings, reactor: interfaces.IReactorTime) -> ICoordinator:
    """A client, not started. Raises MissingExtra where it would need kazoo, which is loaded here and nowhere before."""
    address = settings.address
    if address.in_memory:
        return ensemble_of(reactor).coordinator(session_seconds=settings.session_seconds, chroot=address.chroot)
    require("the coordinator on ZooKeeper", "ordered")
    from twisted_mq.coordination.zookeeper import ZooKeeperCoordinator

    threads = interfaces.IReactorFromThreads(reactor)
    return ZooKeeperCoordinator(settings, reactor, threads.callFromThread)  # type: ignore[arg-type]
