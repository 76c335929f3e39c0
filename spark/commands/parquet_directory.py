"""A plain directory of Parquet files as the target of an export."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence

from pyarrow import fs

from twisted_mq.spark.commands.compaction import FOLDER, Compacted, Merge, Part, merges, write_merged
from twisted_mq.spark.commands.slices import Marks, ProgressFile, Slice
from twisted_mq.spark.commands.targets import DAY, Added, ExportPlace, may_continue, replace_file
from twisted_mq.spark.file_systems import locate


class ParquetDirectory:
    """Files in topic=.../day=.../, and the progress of the export; readers skip names that begin with `_`.

    Files are moved in one by one before the slice is done, and a merged file comes after its parts are deleted, so a reader may
    see a part of it.
    """

    partitions: Mapping[str, str] = {"topic": "topic", DAY: DAY}

    def __init__(self, place: ExportPlace) -> None:
        self._progress = ProgressFile(
            f"{place.out.rstrip('/')}/_export.json", {"format": "parquet", **place.about}, may_continue
        )
        self._system, self._root = locate(place.out)
        self._plan = f"{self._root}/_compaction.json"
        self._finish()

    def done(self, tags: Iterable[str]) -> Marks:
        return self._progress.done

    def add(self, done: Slice, files: Sequence[Added]) -> None:
        self._progress.reached(done)

    def compact(self, file_bytes: int) -> Compacted:
        found = list(merges(_parts(self._system, self._root), file_bytes))
        for merge in found:
            write_merged(self._system, self._root, merge)
            replace_file(self._system, self._plan, json.dumps([part.path for part in merge.parts]))
            self._finish()
        return Compacted(sum(len(merge.parts) for merge in found), len(found))

    def _finish(self) -> None:
        """Finish the merge whose file is written, if there is one: also after a kill, and as often as needed."""
        if self._system.get_file_info(self._plan).type == fs.FileType.NotFound:
            return
        with self._system.open_input_file(self._plan) as file:
            merge = Merge(tuple(Part(path, 0) for path in json.loads(file.read())))
        merged, target = f"{self._root}/{FOLDER}/{merge.path.rpartition('/')[2]}", f"{self._root}/{merge.path}"
        for part in merge.parts:
            if self._system.get_file_info(f"{self._root}/{part.path}").type == fs.FileType.File:
                self._system.delete_file(f"{self._root}/{part.path}")
        if self._system.get_file_info(merged).type == fs.FileType.File:
            self._system.move(merged, target)
        self._system.delete_file(self._plan)


def _parts(system: fs.FileSystem, root: str) -> list[Part]:
    """Return the data files below a directory."""
    found = system.get_file_info(fs.FileSelector(root, allow_not_found=True, recursive=True))
    paths = {info.path.removeprefix(f"{root}/"): info for info in found if info.type == fs.FileType.File}
    return [
        Part(path, info.size)
        for path, info in paths.items()
        if path.endswith(".parquet") and not any(step.startswith(("_", ".")) for step in path.split("/"))
    ]
