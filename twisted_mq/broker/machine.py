"""Lists what a broker uses of its machine, apart from the reactor and the files on disk."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import attrs
from twisted.internet import interfaces

from twisted_mq.broker.options import BrokerOptions
from twisted_mq.remoting.listen import Bind, bind
from twisted_mq.storage.flushing.threads import SYSTEM_THREADS, Threads

if TYPE_CHECKING:
    from twisted_mq.coordination.interfaces import ICoordinator
    from twisted_mq.storage.config import StoreConfig
    from twisted_mq.storage.interfaces import IsBatchTopic
    from twisted_mq.storage.memory.memory_store import MemoryMessageStore

    OpenInMemory = Callable[[StoreConfig, Callable[[], int], IsBatchTopic], MemoryMessageStore]


@attrs.frozen
class Machine:
    """The machine of a broker; the defaults are the real one. `monotonic` is in seconds."""

    bind: Bind = bind
    threads: Threads = SYSTEM_THREADS
    open_in_memory: OpenInMemory | None = None
    """Opens a store in memory; None for the files in storePathRootDir."""
    monotonic: Callable[[], float] = time.monotonic
    random: random.Random = attrs.field(factory=random.Random)
    process_id: Callable[[], int] = os.getpid
    coordinator: Callable[[BrokerOptions, interfaces.IReactorTime], ICoordinator] | None = None
    """Makes the coordinator of ordered topics' lists; None for the one that orderCoordinator names."""
