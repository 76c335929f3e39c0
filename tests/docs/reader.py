"""Reader of a page that runs its blocks, in an empty folder of a new home."""

from __future__ import annotations

import doctest
import os
import re
import subprocess
import sys
from pathlib import Path

import attrs

from interop.peers.process import Process, free_port
from tests.docs.blocks import Block

SECONDS = 300
"""For one block; Spark needs most of it on a slow machine."""
NAME_SERVER, BROKER = "9876", "10911"
"""The ports that pages name; free ones take their place."""
NEIGHBOURS = 3
"""A broker listens on ports beside its own, too."""
_SAYS = doctest.OutputChecker()
_LOOSELY = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


@attrs.define
class Reader:
    """A reader. `ports` maps each port on a page to the used one."""

    home: Path
    folder: Path
    ports: dict[str, str]
    printed: str = ""
    _servers: list[Process] = attrs.Factory(list)

    def read(self, block: Block) -> None:
        """Do what the block says. Raises AssertionError where it does not go as it should."""
        text = self._with_ports(block.text)
        if block.mark == "prints":
            assert _SAYS.check_output(text, self.printed, _LOOSELY), (
                f"{block} differs from what was printed:\n{self.printed}"
            )
        elif block.file_name:
            (self.folder / block.file_name).write_text(text)
        elif block.port:
            self._start(block, text)
        elif block.language == "python":
            script = self.folder / f"line_{block.line}.py"
            script.write_text(text)
            self._run(block, [sys.executable, script.name])
        else:
            self._run(block, ["bash", "-eu", "-c", text])

    def leave(self) -> list[int]:
        """Stop the page's servers, the last first; their exit codes."""
        return [server.stop() for server in reversed(self._servers)]

    @property
    def environment(self) -> dict[str, str]:
        """The commands of this environment are found first, as after `. .venv/bin/activate`."""
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("XDG_")}
        commands = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        return {
            **inherited,
            "HOME": str(self.home),
            "PATH": commands,
            "NAMESRV_ADDR": f"127.0.0.1:{self.ports[NAME_SERVER]}",
        }

    def _with_ports(self, text: str) -> str:
        return re.sub("|".join(rf"\b{port}\b" for port in self.ports), lambda found: self.ports[found[0]], text)

    def _run(self, block: Block, command: list[str]) -> None:
        done = subprocess.run(
            command, cwd=self.folder, env=self.environment, capture_output=True, text=True, timeout=SECONDS
        )
        assert done.returncode == 0, f"{block} ended with {done.returncode}\n{done.stdout}\n{done.stderr}"
        self.printed = done.stdout

    def _start(self, block: Block, text: str) -> None:
        server = Process.start(
            ["bash", "-c", f"exec {text}"], self.folder / f"line_{block.line}.log", self.folder, env=self.environment
        )
        self._servers.append(server)
        server.wait_listening(int(self.ports[block.port or ""]))


def ports_of_its_own(named: set[str]) -> dict[str, str]:
    """For a page that starts servers itself on the ports that it names."""
    ports: dict[str, str] = {}
    for port in sorted(named | {NAME_SERVER, BROKER}):
        taken = [int(one) for one in ports.values()]
        ports[port] = str(
            next(one for one in iter(free_port, None) if all(abs(one - other) > NEIGHBOURS for other in taken))
        )
    return ports
