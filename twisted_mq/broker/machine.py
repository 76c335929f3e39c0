"""What a broker takes from the machine that it runs on, beside the reactor and the disk's files."""

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
    """A real one, where a simulation does not say otherwise. `monotonic` is in seconds."""

    bind: Bind = bind
    threads: Threads = SYSTEM_THREADS
    open_in_memory: OpenInMemory | None = None
    """Opens what messages are kept in; None for the files of storePathRootDir."""
    monotonic: Callable[[], float] = time.monotonic
    random: random.Random = attrs.field(factory=random.Random)
    process_id: Callable[[], int] = os.getpid
    coordinator: Callable[[BrokerOptions, interfaces.IReactorTime], ICoordinator] | None = None
    """What ordered topics' lists are in; None for what orderCoordinator names."""
