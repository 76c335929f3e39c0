"""Apache's gRPC clients of 5.x. The Python one has an environment of its own: the C++ client's package is `rocketmq`, too."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path
from typing import Any

from interop.peers.requirements import unavailable
from interop.peers.toolchain import cache_directory

PACKAGE = "rocketmq-python-client==5.1.2"
PROGRAM = Path(__file__).with_name("grpc_python_program.py")
SECONDS = 180


def environment() -> Path:
    """Where the Python client is installed."""
    return (
        cache_directory()
        / f"grpc-python-{sys.version_info.major}.{sys.version_info.minor}-{PACKAGE.partition('==')[2]}"
    )


def python() -> Path:
    """The interpreter that has it."""
    return environment() / "bin" / "python"


def install_python_client() -> None:
    """Make its environment where it is missing. Raises CalledProcessError."""
    if python().exists():
        return
    made = environment().with_suffix(f".{os.getpid()}")
    venv.create(made, with_pip=True, clear=True)
    try:
        subprocess.run(
            [made / "bin" / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", PACKAGE],
            check=True,
            capture_output=True,
            text=True,
        )
        made.rename(environment())
    finally:
        shutil.rmtree(made, ignore_errors=True)


def require_python_client() -> None:
    """Skip, or fail with CI=true, where the client is not installed."""
    if not python().exists():
        unavailable(f"{PACKAGE} is not installed (python -m interop.peers.setup installs it)")


def run(folder: Path, address: str, scenario: str, topic: str, group: str) -> Any:
    """Run a scenario of the program and return the JSON value that it printed. Its logs go to `folder`."""
    done = subprocess.run(
        [python(), PROGRAM, address, scenario, topic, group],
        env={**os.environ, "HOME": str(folder)},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr[-4000:]}"
    return json.loads(done.stdout.splitlines()[-1])
