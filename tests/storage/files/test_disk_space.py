"""The one measure of a disk, beside the system's own."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from twisted_mq.storage.files.disk_space import NOT_KNOWN, DiskSpace, disk_space, used_ratio


@pytest.mark.parametrize(
    ("space", "ratio"),
    [
        (DiskSpace(1000, 250, 200), 0.79),
        (DiskSpace(1000, 1000, 900), 0.0),
        (DiskSpace(1000, 0, 0), 1.0),
        (DiskSpace(0, 0, 0), NOT_KNOWN),
        (DiskSpace(100, 99, 99), 0.01),
    ],
)
def test_used_ratio_is_whole_percent_rounded_up(space: DiskSpace, ratio: float) -> None:
    assert space.used_ratio == ratio


def test_disk_that_cannot_be_measured_is_not_known(tmp_path: Path) -> None:
    assert used_ratio(str(tmp_path / "missing")) == NOT_KNOWN


@pytest.mark.skipif(shutil.which("df") is None, reason="this system has no df")
def test_figures_are_those_of_df(tmp_path: Path) -> None:
    """A test beside this one may write meanwhile: one percent, and 1 GiB of what is available, may differ."""
    words = ["df", "--block-size=1", "--output=size,used,avail,pcent", str(tmp_path)]
    size, used, available, percent = subprocess.run(words, check=True, capture_output=True, text=True).stdout.split()[
        -4:
    ]
    found = disk_space(str(tmp_path))
    assert found.total == int(size)
    assert abs(found.used - int(used)) < 1 << 30
    assert abs(found.available - int(available)) < 1 << 30
    assert abs(found.used_ratio * 100 - int(percent.rstrip("%"))) <= 1
