"""Spark as processes of their own: a standalone master with two workers, a Connect server, and programs for them.

All run a Python that has what Spark needs and not this project.
"""

from __future__ import annotations

import os
import subprocess
import sysconfig
import venv
from collections.abc import Sequence
from pathlib import Path

import attrs
import pyspark

from interop.peers.process import Process, free_port, wait_until

HOME = Path(pyspark.__file__).parent
WORKERS_HAVE = (
    "numpy", "numpy.libs", "pandas", "pyarrow", "dateutil", "pytz", "six.py", "tzdata", "pyspark", "py4j",
)  # fmt: skip
SHORT_LIVED = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:-UsePerfData"
SETTINGS = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "512m",
    "spark.executor.memory": "512m",
    "spark.driver.extraJavaOptions": SHORT_LIVED,
    "spark.executor.extraJavaOptions": SHORT_LIVED,
    "spark.log.level": "WARN",
    "spark.sql.shuffle.partitions": "2",
    "spark.ui.enabled": "false",
}
WORKERS = 2
PATIENCE_SECONDS = 240
"""A start is seconds of processor time, many where other tests run."""


def lean_python(folder: Path, packages: Sequence[str] = WORKERS_HAVE) -> Path:
    """A Python of its own with these packages of ours, and nothing else."""
    venv.create(folder, symlinks=True)
    here = Path(sysconfig.get_path("purelib"))
    there = Path(sysconfig.get_path("purelib", vars={"base": str(folder), "platbase": str(folder)}))
    for name in packages:
        if (here / name).exists():
            (there / name).symlink_to(here / name)
    return folder / "bin" / "python"


@attrs.define
class SparkHome:
    """Settings and environment of all of these processes; what they write lies in `folder`."""

    folder: Path
    python: Path

    @classmethod
    def made(cls, folder: Path) -> SparkHome:
        settings = "\n".join(f"{name} {value}" for name, value in SETTINGS.items())
        (folder / "conf").mkdir()
        (folder / "conf" / "spark-defaults.conf").write_text(f"{settings}\n")
        return cls(folder, lean_python(folder / "python"))

    @property
    def environment(self) -> dict[str, str]:
        """Nothing of the caller's but where programs are."""
        return {
            "PATH": f"{HOME / 'bin'}:{os.environ['PATH']}",
            **{name: os.environ[name] for name in ("JAVA_HOME", "LANG") if name in os.environ},
            "HOME": str(self.folder),
            "SPARK_HOME": str(HOME),
            "SPARK_CONF_DIR": str(self.folder / "conf"),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_LOCAL_DIRS": str(self.folder / "local"),
            "SPARK_DAEMON_MEMORY": "600m",
            "SPARK_DAEMON_JAVA_OPTS": SHORT_LIVED,
            "PYSPARK_PYTHON": str(self.python),
        }

    def start(self, name: str, *command: str) -> Process:
        """Start a program of Spark; its log has its name."""
        log = self.folder / f"{name}.log"
        return Process.start([str(HOME / "bin" / command[0]), *command[1:]], log, self.folder, env=self.environment)

    def run(
        self, command: Sequence[str], seconds: float = 2 * PATIENCE_SECONDS, **more: str
    ) -> subprocess.CompletedProcess[str]:
        """A program that comes to its end, in the environment of the others."""
        environment = {**self.environment, **more}
        return subprocess.run(
            command, cwd=self.folder, env=environment, capture_output=True, text=True, timeout=seconds, check=False
        )


@attrs.define
class StandaloneCluster:
    """A master and its workers, with a core each."""

    home: SparkHome
    port: int = attrs.field(factory=free_port)
    _processes: list[Process] = attrs.field(factory=list)

    @property
    def url(self) -> str:
        return f"spark://127.0.0.1:{self.port}"

    def start(self) -> None:
        master = self._start("master", "--port", str(self.port))
        master.wait_listening(self.port, PATIENCE_SECONDS)
        workers = [
            self._start("worker", "--cores", "1", "--memory", "700m", "--work-dir", f"work{number}", self.url)
            for number in range(WORKERS)
        ]
        wait_until(
            lambda: all("Successfully registered" in one.output() for one in workers),
            lambda: "\n".join(one.output_tail() for one in workers),
            PATIENCE_SECONDS,
        )

    def _start(self, kind: str, *options: str) -> Process:
        name = f"org.apache.spark.deploy.{kind}.{kind.capitalize()}"
        address = ("--host", "127.0.0.1", "--webui-port", "0")
        process = self.home.start(f"{kind}{len(self._processes)}", "spark-class", name, *address, *options)
        self._processes.append(process)
        return process

    def stop(self) -> None:
        """Workers end their executors before they end."""
        for process in reversed(self._processes):
            process.stop()


@attrs.define
class ConnectServer:
    """A Spark Connect server with two cores of its own."""

    home: SparkHome
    port: int = attrs.field(factory=free_port)
    _process: Process | None = None

    @property
    def url(self) -> str:
        return f"sc://127.0.0.1:{self.port}"

    def start(self) -> None:
        server = "org.apache.spark.sql.connect.service.SparkConnectServer"
        binding = "spark.connect.grpc.binding"
        address = ("--conf", f"{binding}.address=127.0.0.1", "--conf", f"{binding}.port={self.port}")
        self._process = self.home.start(
            "connect", "spark-submit", "--master", "local[2]", "--class", server, *address, "spark-internal"
        )
        self._process.wait_listening(self.port, PATIENCE_SECONDS)

    def stop(self) -> None:
        if self._process is not None:
            self._process.stop()
