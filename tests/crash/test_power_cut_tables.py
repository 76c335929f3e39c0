"""Power cuts while the broker's JSON tables are saved: each is the old or the new version, never lost and never a mixture."""

from __future__ import annotations

import os
import random
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.crash.test_damaged_tables import TABLES, load
from tests.support.crash_rounds import scaled
from tests.support.power_cut import DiskRecorder
from twisted_mq.protocol.bodies import DataVersion

VERSIONS = 4
IMAGES_A_CUT = 2
_CALLS = ("replace", "link", "unlink", "mkdir")


class Cuts:
    """Takes images of a directory before every sync and every change of a name; `newest` is the version on disk."""

    def __init__(self, root: Path, source: random.Random) -> None:
        self.images: list[tuple[int, Path]] = []
        self.newest = -1
        self._source = source
        self._busy = False
        self.disk = DiskRecorder(root)
        self.disk.before_sync = self.cut

    def cut(self) -> None:
        if self._busy:
            return
        self._busy = True
        for _ in range(IMAGES_A_CUT):
            image = self.disk.root.with_name(f"image{len(self.images)}")
            self.disk.image(image, self._source)
            self.images.append((self.newest, image))
        self._busy = False

    def before(self, call: Any) -> Any:
        def cut_first(*arguments: Any, **keywords: Any) -> Any:
            self.cut()
            return call(*arguments, **keywords)

        return cut_first


@pytest.mark.parametrize("seed", range(scaled(3)))
@pytest.mark.parametrize("name", TABLES)
def test_a_table_is_the_old_or_the_new_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, seed: int
) -> None:
    root = tmp_path / "store"
    root.mkdir()
    cuts = Cuts(root, random.Random(seed))
    versions = []
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", cuts.disk.sync)
        for call in _CALLS:
            patch.setattr(os, call, cuts.before(getattr(os, call)))
        for number in range(VERSIONS):
            table = TABLES[name](str(root / "config" / name), number)
            table.data_version = DataVersion(0, 1_700_000_000_000, number)
            table.save()
            cuts.newest = number
    cuts.cut()
    cuts.disk.close()
    for number in range(VERSIONS):
        (tmp_path / str(number)).mkdir()
        table = TABLES[name](str(tmp_path / str(number) / name), number)
        table.data_version = DataVersion(0, 1_700_000_000_000, number)
        table.save()
        versions.append(load(tmp_path / str(number), name)[0])
    empty, _ = load(tmp_path / "nowhere", name)
    assert len(cuts.images) > VERSIONS * 8
    for newest, image in cuts.images:
        found, told = load(image / "config", name)
        owed = [empty if newest < 0 else versions[newest], *versions[newest + 1 : newest + 2]]
        assert found in owed, (newest, image, told)
        assert told == []
        shutil.rmtree(image)
