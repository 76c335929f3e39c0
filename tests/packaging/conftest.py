"""An environment with the wheel installed: nothing of the source tree is on its path."""

from __future__ import annotations

import importlib.metadata
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
IGNORED = shutil.ignore_patterns("__pycache__", "dropin.cache")
SOURCES = ("pyproject.toml", "setup.cfg", "README.md", "protocol", "storage", "twisted_mq", "spark", "twisted")


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built without network from a copy of the sources."""
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"
    source.mkdir()
    for name in SOURCES:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, source / name, symlinks=True, ignore=IGNORED)
        else:
            shutil.copy(ROOT / name, source / name)
    built = subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(source)],
        capture_output=True,
        text=True,
    )
    assert built.returncode == 0, built.stdout + built.stderr
    return next(folder.glob("*.whl"))


@pytest.fixture(scope="session")
def installed_python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """An interpreter with the wheel installed. Its dependencies come from this environment's packages, as a path:
    so the .pth file of an editable install there has no effect."""
    folder = tmp_path_factory.mktemp("installed") / "venv"
    venv.create(folder, with_pip=False, symlinks=True)
    python = str(folder / "bin" / "python")
    site = subprocess.run(
        [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
        capture_output=True, text=True, check=True,
    ).stdout.strip()  # fmt: skip
    installed = subprocess.run(
        [sys.executable, "-m", "pip", "--python", python, "install", "--no-index", "--no-deps", "--quiet", str(wheel)],
        capture_output=True,
        text=True,
    )
    assert installed.returncode == 0, installed.stdout + installed.stderr
    dependencies = importlib.metadata.distribution("twisted").locate_file("")
    (Path(site) / "dependencies.pth").write_text(f"{dependencies}\n")
    return python
