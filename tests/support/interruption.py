"""The end of a process before any of its writes, without a process."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from typing import Any

import attrs
import pytest

from twisted_mq.storage.files.mapped_file import MappedFile
from twisted_mq.storage.queues.batch_consume_queue import BatchConsumeQueue
from twisted_mq.storage.queues.consume_queue import ConsumeQueue


class Killed(BaseException):
    """The process ends here."""


@attrs.define
class Interruption:
    """Counts the writes of a start, and ends it before number `at`, counted from 0."""

    at: int
    writes: int = 0

    def guarded(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def guarded(*arguments: Any, **keywords: Any) -> Any:
            if self.writes == self.at:
                raise Killed
            self.writes += 1
            return call(*arguments, **keywords)

        return guarded

    @contextlib.contextmanager
    def patched(self, sync: Callable[[int], None]) -> Iterator[None]:
        """All that changes files counts: their names, their lengths, what is written into mappings, and flushes."""
        with pytest.MonkeyPatch.context() as patch:
            for name in ("unlink", "ftruncate", "truncate", "replace", "rename", "rmdir", "mkdir", "pwrite"):
                patch.setattr(os, name, self.guarded(getattr(os, name)))
            patch.setattr(os, "fsync", self.guarded(sync))
            for owner, method in (
                (ConsumeQueue, "append"),
                (ConsumeQueue, "rewrite"),
                (ConsumeQueue, "_append_filler"),
                (BatchConsumeQueue, "_put"),
                (MappedFile, "_clear"),
            ):
                patch.setattr(owner, method, self.guarded(getattr(owner, method)))
            yield
