"""The wheel of rocketmq-twisted-speed beside the project's: used where it is there, and the bytes are the same without it."""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
import zipfile
from os import environ
from pathlib import Path

import pytest

from tests.packaging.conftest import ROOT, built_wheel, run
from tests.packaging.daemons import environment

BATCHES = """
import hashlib
from twisted_mq.protocol.layouts import compiled
from twisted_mq.protocol.layouts.batch_entry import encode_entry, read_columns
from twisted_mq.protocol.layouts.batch_records import encode_records
from twisted_mq.storage.columns.record_columns import following_records
from twisted_mq.storage.files.mapped_log import LogBytes

data = b"".join(encode_entry(number, b"b" * number, b"K\x01%d\x02" % number) for number in range(40))
columns = read_columns(data)
records, sizes = encode_records(
    b"Topic", *columns[:3], b"A\x01b\x02", columns[3], queue_id=1, queue_offset=2, physical_offset=3, born_timestamp=4,
    born_host=bytes(8), store_timestamp=5, store_host=bytes(8),
)
log = LogBytes(bytes(records), "log", 3)
walked = following_records(log, 0, log.size)
assert len(walked) == 40
found = columns, bytes(records), sizes, walked.properties.tolist(), walked.wrong_bodies().tolist()
print(compiled.forms != compiled.PLAIN, hashlib.sha256(repr(found).encode()).hexdigest())
"""


@pytest.fixture(scope="module")
def speed_wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel that MQ_SPEED_WHEEL names, or one that is built from a copy of the sources where a compiler is."""
    if given := environ.get("MQ_SPEED_WHEEL"):
        return Path(given)
    if shutil.which("cc") is None or not Path(sysconfig.get_path("include"), "Python.h").exists():
        pytest.skip("no C compiler, or no Python.h")
    folder = tmp_path_factory.mktemp("speed")
    shutil.copytree(ROOT / "speed", folder / "source", ignore=shutil.ignore_patterns("build", "*.egg-info"))
    return built_wheel(folder / "source", folder)


def printed(python: str, folder: Path, **variables: str) -> list[str]:
    """Return whether the compiled form is used, and a digest of what was made."""
    words = [python, "-c", BATCHES]
    own = environment(folder)
    own.pop("MQ_COMPILED", None)  # `make test` switches it off for all
    done = subprocess.run(words, cwd=folder, env=own | variables, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_bytes_are_the_same_with_it_without_it_and_switched_off(
    installed_python: str, speed_wheel: Path, tmp_path: Path
) -> None:
    target = str(tmp_path / "packages")
    run(
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-index",
        "--no-deps",
        "--target",
        target,
        str(speed_wheel),
    )
    without = printed(installed_python, tmp_path)
    assert without[0] == "False"
    assert printed(installed_python, tmp_path, PYTHONPATH=target) == ["True", without[1]]
    assert printed(installed_python, tmp_path, PYTHONPATH=target, MQ_COMPILED="off") == without


def test_one_wheel_is_for_this_python_and_later_ones(speed_wheel: Path) -> None:
    assert speed_wheel.name.startswith("rocketmq_twisted_speed-2.0.0-cp311-abi3-")
    names = zipfile.ZipFile(speed_wheel).namelist()
    package = {name.partition("/")[2] for name in names if ".dist-info/" not in name}
    assert {name for name in package if "abi3" not in name and not name.endswith(".pyd")} == {
        "__init__.py", "batches.pyi", "records.pyi", "py.typed",
    }  # fmt: skip
    assert len(package) == 6
    (licence,) = [name for name in names if name.endswith("/LICENSE")]
    assert zipfile.ZipFile(speed_wheel).read(licence) == (ROOT / "LICENSE").read_bytes()
