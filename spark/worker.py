"""What a Python worker of Spark does once, however many tasks it gets."""

from __future__ import annotations

import functools
import gc


@functools.cache
def keep_what_is_loaded() -> None:
    """Keep the modules that are loaded by now out of garbage collection, for tasks to call.

    Spark collects garbage in a worker after each task, which takes some 35 ms for these modules alone.
    """
    gc.freeze()
