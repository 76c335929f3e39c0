"""Plants stores of ordered queues, sound or not, group by group."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path

import attrs

from tests.spark.stores import StoreWriter


@attrs.define
class OrderedStores:
    """Stores below a folder, in the order in which they are named first."""

    folder: Path
    writers: dict[str, StoreWriter] = attrs.field(factory=dict)
    copies: dict[str, str] = attrs.field(factory=dict)

    def send(
        self,
        store: str,
        epoch: int,
        leader: int,
        sequences: Iterable[int],
        *,
        base: int = 1,
        queue: int = 0,
        topic: str = "Orders",
    ) -> None:
        """Messages of an ordered producer."""
        for sequence in sequences:
            mark = f"{epoch}:{queue}:{leader}:{min(base, sequence)}:{sequence}"
            self.put(store, {"ORDERED": mark}, queue=queue, topic=topic)

    def put(
        self,
        store: str,
        properties: dict[str, str],
        *,
        queue: int = 0,
        topic: str = "Orders",
        queue_offset: int | None = None,
    ) -> None:
        """Append one message."""
        writer = self.writers.setdefault(store, StoreWriter(self.folder / store))
        writer.append(topic, properties=properties, queue_id=queue, queue_offset=queue_offset)

    def copy(self, store: str, name: str) -> None:
        """A slave's store."""
        self.copies[name] = store

    def write(self) -> list[str]:
        """The paths of all stores."""
        paths = [writer.write() for writer in self.writers.values()]
        for name, store in self.copies.items():
            shutil.copytree(self.folder / store, self.folder / name, dirs_exist_ok=True)
            paths.append(str(self.folder / name))
        return paths

    def number(self, store: str, physical: int) -> int:
        """Return the number of the message of a store that begins there."""
        return self.writers[Path(store).name].positions.index(physical)
