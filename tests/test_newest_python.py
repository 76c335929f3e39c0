"""The additional Python that tests the client, and its packages."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from tests import newest_python


def test_the_newest_interpreter_is_the_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = sys.version_info.minor
    versions = tmp_path / "versions"
    for minor, patch in ((here + 1, 4), (here + 2, 0), (here + 2, 3), (here, 9)):
        python = versions / f"3.{minor}.{patch}" / "bin" / f"python3.{minor}"
        python.parent.mkdir(parents=True)
        python.touch()
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path))
    monkeypatch.setattr(shutil, "which", lambda name: None)
    monkeypatch.setattr(newest_python, "MINOR_VERSIONS", range(here + 3, here, -1))
    found = [path.relative_to(versions).parts[0] for path in newest_python.candidates()]
    assert found == [f"3.{here + 2}.3", f"3.{here + 2}.0", f"3.{here + 1}.4"]


def test_without_a_newer_one_it_is_said(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(newest_python, "candidates", lambda: iter(()))
    assert newest_python.main() == 0
    assert capsys.readouterr().out.startswith("NOT RUN on a newer Python")


def test_what_is_installed_is_pinned() -> None:
    pinned = {line.partition("==")[0] for line in newest_python.pins().splitlines() if line}
    wanted = {line.partition(" ")[0].replace(".", "-") for line in newest_python.requirements()}
    assert {"twisted", "pytest", "numpy"} <= wanted
    assert wanted <= pinned
    assert "--hash" not in newest_python.pins()
