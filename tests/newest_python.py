"""The client's tests on the newest Python that this machine has: `python -m tests.newest_python`, part of `make test`.

It makes a virtual environment in build/ with what the client and its tests need, in the versions of constraints.txt, and uses
it again while those stay the same. Where there is no newer Python it says so and succeeds.
"""

from __future__ import annotations

import configparser
import hashlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
MINOR_VERSIONS = range(14, sys.version_info.minor, -1)
EXTRAS = ("broker", "lz4", "zstd", "ordered", "tls", "metrics", "opentelemetry", "proxy")
"""Extras of the project for brokers in tests, ordered groups, encryption, telemetry and protobuf messages."""
TEST_PACKAGES = (
    "pytest", "hypothesis", "pytest-asyncio", "pytest-xdist", "pydantic", "uvloop", "opentelemetry-sdk",
)  # fmt: skip
TESTS = [f"tests/twisted_mq/{name}" for name in ("aio", "blocking", "client", "testing")]
FEWER = "not as_far_as_the_scope_goes"
ROUNDS = {"MQ_LIFE_ROUNDS": "5"}
"""Fewer rounds of tests with many processes or starts and stops, which one Python runs in full."""


def candidates() -> Iterator[Path]:
    """Interpreters newer than this one, the newest first: of the path, then pyenv's."""
    versions = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    for minor in MINOR_VERSIONS:
        found = shutil.which(f"python3.{minor}")
        if found is not None and "shims" not in Path(found).parts:
            yield Path(found)
        yield from sorted(versions.glob(f"3.{minor}.*/bin/python3.{minor}"), reverse=True)


def requirements() -> list[str]:
    """Return the packages to install: requirements of the project and these extras, and test runners."""
    options = configparser.ConfigParser()
    options.read(ROOT / "setup.cfg")
    extras = options["options.extras_require"]
    lines = [options["options"]["install_requires"], *(extras[name] for name in EXTRAS)]
    dev = [line for line in extras["dev"].splitlines() if re.split(r"[ <>=;]", line.strip())[0] in TEST_PACKAGES]
    stripped = [line.strip() for text in (*lines, *dev) for line in text.splitlines() if line.strip()]
    return [line for line in stripped if not line.startswith("rocketmq-twisted")]  # extras in extras are in EXTRAS, too


def pins() -> str:
    """constraints.txt without its hashes, which pip wants for nothing or for everything."""
    text = (ROOT / "constraints.txt").read_text()
    return "\n".join(line.rstrip(" \\") for line in text.splitlines() if not line.startswith((" ", "#")))


def environment(python: Path) -> Path:
    """The interpreter of an environment that has all of them."""
    folder = ROOT / "build" / python.name
    wanted = "\n".join([str(python), *requirements(), pins()])
    stamp, made = folder / "made", hashlib.sha256(wanted.encode()).hexdigest()
    if not stamp.is_file() or stamp.read_text() != made:
        print(f"making {folder} with {python}", flush=True)
        subprocess.run([python, "-m", "venv", "--clear", folder], check=True)
        (folder / "pins.txt").write_text(pins())
        install = [folder / "bin" / "python", "-m", "pip", "--quiet", "--disable-pip-version-check", "install"]
        subprocess.run([*install, "-c", folder / "pins.txt", *requirements()], check=True)
        stamp.write_text(made)
    return folder / "bin" / "python"


def main() -> int:
    """The exit code."""
    python = next(candidates(), None)
    if python is None:
        here = ".".join(map(str, sys.version_info[:2]))
        print(f"NOT RUN on a newer Python: none was found, the client was tested on {here} alone")
        return 0
    print(f"the client's tests on {python}", flush=True)
    inherited = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    where = {**inherited, **ROUNDS, "PYTHONPATH": str(ROOT)}
    run = [environment(python), "-m"]
    plugin = ["-p", "twisted_mq.testing.fixtures"]
    codes = [
        subprocess.run(
            [*run, "pytest", *plugin, "-m", "not trial", "-k", FEWER, *TESTS], cwd=ROOT, env=where
        ).returncode,
        subprocess.run([*run, "twisted.trial", "tests.twisted_mq.client"], cwd=ROOT, env=where).returncode,
    ]
    return max(codes, key=abs)


if __name__ == "__main__":
    sys.exit(main())
