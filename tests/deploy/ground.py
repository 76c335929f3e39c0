"""Ground on which deploy/ is rehearsed without root: folders and ports of its own in the place of those that the files name.

Every text of a file or a command is changed alike: /etc, /opt and /var lead below one folder, each port number is replaced by a
free one, and each host by 127.0.0.1. Two files that name the same port collide here as they would on a machine.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from pathlib import Path

import attrs

from interop.peers.process import free_port

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
FOLDERS = ("/etc/rocketmq", "/etc/systemd/system", "/opt/rocketmq", "/var/lib/rocketmq")
COMMANDS = ("twistd", "mq", "mqadmin", "python")
SPARE = 3
"""A broker also listens on neighbours of its port."""


def new_ports(names: set[str], taken: dict[str, str]) -> dict[str, str]:
    """A free port for each number. Neighbours of a broker's port stay its neighbours."""
    found = dict(taken)
    for name in sorted(names - taken.keys()):
        neighbour = str(int(name) - 1)
        if neighbour in found and int(name) % 10 == 2:
            found[name] = str(int(found[neighbour]) + 1)
            continue
        used = [int(port) for port in found.values()]
        found[name] = str(next(port for port in iter(free_port, None) if all(abs(port - one) > SPARE for one in used)))
    return found


@attrs.define
class Ground:
    """`words` are replaced wherever they are in a text."""

    folder: Path
    words: dict[str, str]

    @classmethod
    def new(cls, folder: Path, ports: dict[str, str], hosts: dict[str, str] | None = None) -> Ground:
        """Folders for one machine or container, with the commands of this environment in its venv."""
        folders = {name: str(folder) + name for name in FOLDERS}
        for path in folders.values():
            Path(path).mkdir(parents=True, exist_ok=True)
        return cls(folder, {**folders, **ports, **(hosts or {})})

    def text(self, text: str) -> str:
        """The same text for this ground."""
        longest_first = sorted(self.words, key=len, reverse=True)
        pattern = "|".join(rf"\b{word}\b" if word.isdigit() else re.escape(word) for word in longest_first)
        return re.sub(pattern, lambda found: self.words[found[0]], text)

    def path(self, path: str) -> Path:
        """The place of an absolute path."""
        return Path(self.text(path))

    def put(self, source: Path, target: str) -> None:
        """Copy a file with its text changed."""
        place = self.path(target)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(self.text(source.read_text()))

    def make_venv(self) -> None:
        """Create the files of `python3 -m venv` and `pip install`."""
        folder = self.path("/opt/rocketmq/venv/bin")
        folder.mkdir(parents=True)
        for name in COMMANDS:
            (folder / name).symlink_to(Path(sys.executable).with_name(name))

    @property
    def environment(self) -> dict[str, str]:
        """Commands of the venv come first; nothing of the caller's settings."""
        path = f"{self.path('/opt/rocketmq/venv/bin')}{os.pathsep}/usr/bin{os.pathsep}/bin"
        return {"PATH": path, "HOME": str(self.path("/var/lib/rocketmq")), "PYTHONUNBUFFERED": "1"}

    def copy_of_deploy(self) -> None:
        """deploy/ beside this ground's folders, changed as every text is."""
        target = self.folder / "deploy"
        shutil.copytree(DEPLOY, target)
        for path in target.rglob("*"):
            if path.is_file():
                path.write_text(self.text(path.read_text()))
