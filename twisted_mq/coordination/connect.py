"""Makes the coordinator for an address."""

from __future__ import annotations

from weakref import WeakKeyDictionary

from twisted.internet import interfaces

from twisted_mq.coordination.interfaces import ICoordinator
from twisted_mq.coordination.memory import MemoryEnsemble
from twisted_mq.coordination.settings import CoordinatorSettings, boot_seconds
from twisted_mq.extras import require

_ensembles: WeakKeyDictionary[interfaces.IReactorTime, MemoryEnsemble] = WeakKeyDictionary()


def ensemble_of(reactor: interfaces.IReactorTime) -> MemoryEnsemble:
    """Return the tree of the address `memory`, created at its first use: one for each reactor of this process."""
    if reactor not in _ensembles:
        _ensembles[reactor] = MemoryEnsemble(reactor, monotonic=boot_seconds)
    return _ensembles[reactor]


def coordinator_for(settings: CoordinatorSettings, reactor: interfaces.IReactorTime) -> ICoordinator:
    """Return a client, not started. Raises MissingExtra if it needs kazoo, which is loaded only here."""
    address = settings.address
    if address.in_memory:
        return ensemble_of(reactor).coordinator(session_seconds=settings.session_seconds, chroot=address.chroot)
    require("the coordinator on ZooKeeper", "ordered")
    from twisted_mq.coordination.zookeeper import ZooKeeperCoordinator

    threads = interfaces.IReactorFromThreads(reactor)
    return ZooKeeperCoordinator(settings, reactor, threads.callFromThread)  # type: ignore[arg-type]
