"""The fixture `mq_server` serves Apache's official Python client, as docs/how-to/use-grpc-clients.md shows."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from interop.peers.grpc_peers.clients import CLIENTS, python_environment
from tests.docs.blocks import blocks

pytestmark = pytest.mark.peer

PAGE = Path(__file__).parents[1] / "docs/how-to/use-grpc-clients.md"


def test_page_s_test_with_the_official_client_passes(tmp_path: Path) -> None:
    CLIENTS["python-5.1.2"].require()
    [example] = [block.text for block in blocks(PAGE) if "mq_server.grpc" in block.text]
    (tmp_path / "test_page.py").write_text(example)
    [packages] = python_environment().glob("lib/python*/site-packages")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_page.py"]
    ran = subprocess.run(
        command,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(packages)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (ran.returncode, "1 passed" in ran.stdout) == (0, True), ran.stdout + ran.stderr
