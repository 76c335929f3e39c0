"""Requirements of tests on the machine. Without one a test is skipped and names it; with CI=true it fails."""

from __future__ import annotations

import functools
import importlib.util
import os
import shutil
import subprocess
from typing import NoReturn

import pytest

from interop.peers import toolchain

BROWSER = {"chromium": "chromium", "chromedriver": "chromium-driver"}
"""Command -> Debian's package."""


def in_ci() -> bool:
    return os.environ.get("CI", "").lower() in ("true", "1")


def unavailable(reason: str) -> NoReturn:
    """Skip the test that asked, or fail it where a silent skip would hide a hole."""
    if in_ci():
        pytest.fail(f"{reason} (CI=true: peers must not be skipped)", pytrace=False)
    pytest.skip(reason)


@functools.cache
def java_problem() -> str | None:
    """Why Apache's Java programs cannot run here, None when they can. Fetches jars and compiles at the first call."""
    missing = toolchain.missing_tools()
    if missing:
        return f"no {', '.join(missing)} on the path (make setup installs a JDK and Maven)"
    try:
        toolchain.fetch_jars()
        toolchain.compile_programs()
    except subprocess.CalledProcessError as failure:
        return f"{failure.cmd[0]} failed: {(failure.stderr or failure.stdout or '').strip()[-400:]}"
    return None


def require_java() -> None:
    problem = java_problem()
    if problem is not None:
        unavailable(f"Apache's Java peers cannot run: {problem}")


def require_cpp_client() -> None:
    if importlib.util.find_spec("rocketmq") is None:
        unavailable("Apache's C++ client is missing: the wheel rocketmq 0.4.4 is not installed")


def missing_browser() -> list[str]:
    """Commands of the browser that are not on the path."""
    return [command for command in BROWSER if shutil.which(command) is None]


def require_browser() -> None:
    missing = missing_browser()
    if missing:
        unavailable(f"no {', '.join(missing)} on the path (make setup installs Debian's {', '.join(BROWSER.values())})")
