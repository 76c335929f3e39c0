"""Goes from a released version to the present one and back, twice, on one store; a message more each time."""

from __future__ import annotations

import io
import json
import subprocess
import tarfile
from pathlib import Path

from tests.support.shifted_clock import ShiftedClock
from tests.upgrade.released import HERE
from tests.week.servers import Server, command
from twisted_mq.config.properties import read_properties

ROOT = Path(__file__).parents[2]
SOURCES = {"0.1.0": "51e55f960d74e657e988866b58fdbaefdfcb66a2"}
"""Version -> the commit whose broker made its store in tests/upgrade."""
PACKAGES = ("twisted", "twisted_mq", "protocol", "storage", "spark", "pyspark_rocketmq")
VERSIONS = sorted(one.name for one in HERE.iterdir() if (one / "broker.conf").exists())
OF_THE_STAGE = ("listenPort", "haListenPort", "namesrvAddr", "bindAddress")
STEPS = ("released", "present", "released", "present")


def has_sources(version: str) -> bool:
    """Return whether this checkout has the history with a version's sources; an unpacked sdist has none."""
    asked = ["git", "cat-file", "-e", f"{SOURCES[version]}^{{commit}}"]
    return subprocess.run(asked, cwd=ROOT, capture_output=True).returncode == 0


def unpack_sources(version: str, folder: Path) -> Path:
    """Put the sources of a version into a folder. Raises CalledProcessError."""
    packed = ["git", "archive", SOURCES[version], *PACKAGES]
    archive = subprocess.run(packed, cwd=ROOT, capture_output=True, check=True).stdout
    with tarfile.open(fileobj=io.BytesIO(archive)) as files:
        files.extractall(folder, filter="tar")
    return folder


def there_and_back(version: str, folder: Path, clock: ShiftedClock) -> int:
    """Return how many messages both versions found at the end. Raises AssertionError, PeerFailed."""
    expected = json.loads((HERE / version / "expected.json").read_text())
    topic = expected["topic"]
    sources = unpack_sources(version, folder / "sources")
    with tarfile.open(HERE / version / "store.tar.xz") as archive:
        archive.extractall(folder, filter="data")
    entries = read_properties(str(HERE / version / "broker.conf"))
    settings = {entry.key: entry.value for entry in entries if entry.key not in OF_THE_STAGE}
    files = {"kvConfigPath": folder / "kv.json", "configStorePath": folder / "namesrv.properties"}
    names = Server("mqnamesrv", folder / "namesrv", clock, files)
    names.start()
    where = {"namesrvAddr": names.address, "storePathRootDir": folder / "store"}
    bodies = [body for queue in expected["bodies"].values() for body in queue] + [expected["delayed"]]
    try:
        for step in STEPS:
            home = folder / step
            broker = Server(
                "mqbroker", home, clock, {**settings, **where}, sources=sources if step == "released" else None
            )
            broker.start()
            try:
                found = command("mq", "consume", topic, "--namesrv", names.address, "--group", f"look-{len(bodies)}",
                                "--count", str(len(bodies)), "--raw")  # fmt: skip
                assert sorted(found.splitlines()) == sorted(bodies), (step, found)
                bodies.append(f"sent at step {len(bodies)}")
                command("mq", "send", topic, bodies[-1], "--namesrv", names.address)
            finally:
                broker.stop()
    finally:
        names.stop()
    command("mq", "store", "verify", str(folder / "store"))
    return len(bodies)
