"""A broker for tests in Java, as the page on testing shows it, with Apache's client."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from interop.peers.requirements import require_java
from interop.peers.toolchain import jar_directory
from tests.docs.blocks import ROOT, blocks

pytestmark = pytest.mark.peer


def test_the_program_of_the_page_sends_and_leaves_no_broker(tmp_path: Path) -> None:
    require_java()
    (program,) = (one for one in blocks(ROOT / "docs/how-to/test-with-a-broker.md") if one.language == "java")
    (tmp_path / "Broker.java").write_text(program.text)
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    environment["TMPDIR"] = str(tmp_path)
    done = subprocess.run(
        ["java", f"-Duser.home={tmp_path}", "-cp", f"{jar_directory()}/*", "Broker.java"],
        cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert (done.returncode, done.stdout.splitlines()[-1:]) == (0, ["SEND_OK"]), done.stdout + done.stderr
    assert list(tmp_path.glob("mq-store-*")) == []
