"""Brings the peers and a browser onto this machine: `python -m interop.peers.setup`. Quick when everything is there.

Installs Debian's JDK, Maven, Go, Node and Chromium by apt-get where they are missing and the user is root or has sudo, fetches
Apache's jars and its gRPC clients, Kafka and RabbitMQ, compiles the peer programs. What cannot be had is named; with CI=true
that is a failure, otherwise the tests that need it skip.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

from interop.peers import other_systems, toolchain
from interop.peers.grpc_peers.clients import CLIENTS, TOOLS
from interop.peers.requirements import BROWSER, in_ci, missing_browser

JDK_PACKAGES = ("openjdk-17-jdk-headless", "default-jdk-headless")
"""The first that the distribution offers."""


def install_tools() -> None:
    """apt-get what is missing, where that is possible. Raises CalledProcessError when apt-get fails."""
    missing = [*toolchain.missing_tools(), *missing_browser(), *(tool for tool in TOOLS if shutil.which(tool) is None)]
    if not missing or shutil.which("apt-get") is None or not may_install():
        return
    apt_get("update", "-qq")
    packages = [_offered_jdk()] if {"java", "javac"} & set(missing) else []
    if "mvn" in missing:
        packages.append("maven")
    packages += [package for command, package in {**BROWSER, **TOOLS}.items() if command in missing]
    apt_get("install", "-y", "-qq", "--no-install-recommends", *packages)


def as_root() -> list[str]:
    """Return the prefix of a command that needs root; sudo never asks for a password here."""
    return [] if os.geteuid() == 0 else ["sudo", "-n"]


def may_install() -> bool:
    if os.geteuid() == 0:
        return True
    return shutil.which("sudo") is not None and subprocess.run([*as_root(), "true"], check=False).returncode == 0


def apt_get(*arguments: str) -> None:
    """Raises CalledProcessError."""
    command = [*as_root(), "env", "DEBIAN_FRONTEND=noninteractive", "apt-get", *arguments]
    subprocess.run(command, check=True, capture_output=True, text=True)


def _offered_jdk() -> str:
    for package in JDK_PACKAGES:
        shown = subprocess.run(["apt-cache", "show", package], check=False, capture_output=True)
        if shown.returncode == 0:
            return package
    return JDK_PACKAGES[-1]


def prepare() -> str | None:
    """Install, fetch and compile. Returns what is missing in words, None when the peers can run."""
    try:
        install_tools()
        missing = toolchain.missing_tools()
        if missing:
            return f"missing commands: {', '.join(missing)}; install a JDK 17 and Maven"
        toolchain.fetch_jars()
        toolchain.compile_programs()
    except subprocess.CalledProcessError as failure:
        said = (failure.stderr or failure.stdout or "").strip().splitlines()
        return f"{failure.cmd[0]} failed with {failure.returncode}: {said[-1] if said else 'no output'}"
    return None


def prepare_grpc(java: bool) -> list[str]:
    """Install the gRPC clients, those for Java where its jars are. Returns what is wrong with each."""
    wanted = [client for client in CLIENTS.values() if java or not client.name.startswith("java")]
    return [problem for problem in (client.problem() for client in wanted) if problem is not None]


def prepare_other_systems(java: bool) -> list[str]:
    """Fetch Kafka, where Java is, and RabbitMQ. Returns what is wrong with each."""
    if not other_systems.has_debian_packages() and shutil.which("apt-get") is not None and may_install():
        apt_get("update", "-qq")
    problems = [other_systems.kafka_problem() if java else None, other_systems.rabbit_problem()]
    return [problem for problem in problems if problem is not None]


def main() -> int:
    problem, browser = prepare(), missing_browser()
    others = [*prepare_grpc(java=problem is None), *prepare_other_systems(java=problem is None)]
    for one in others:
        print(f"{one}; tests with it cannot run", file=sys.stderr)
    if browser:
        print(f"no {', '.join(browser)}, tests of the console's pages cannot run", file=sys.stderr)
    if problem is not None:
        print(f"Apache's Java peers are not available, tests against them cannot run: {problem}", file=sys.stderr)
    else:
        print(f"peers ready: {toolchain.cache_directory()}")
    return int(in_ci() and (problem is not None or bool(others) or bool(browser)))


if __name__ == "__main__":
    sys.exit(main())
