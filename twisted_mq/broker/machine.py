"""What a broker takes from the machine that it runs on, beside the reactor and the disk's files."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable

import attrs

from twisted_mq.remoting.listen import Bind, bind
from twisted_mq.storage.flushing.threads import SYSTEM_THREADS, Threads


@attrs.frozen
class Machine:
    """A real one, where a simulation does not say otherwise. `monotonic` is in seconds."""

    bind: Bind = bind
    threads: Threads = SYSTEM_THREADS
    monotonic: Callable[[], float] = time.monotonic
    random: random.Random = attrs.field(factory=random.Random)
    process_id: Callable[[], int] = os.getpid
