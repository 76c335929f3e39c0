"""Servers of other projects without a program of their own: Java's objects, made and joined by Jetty's XML."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

import attrs
import pyspark

from interop.peers.process import Process, free_port
from interop.peers.toolchain import JAVA_OPTIONS, QUICK_START, jar_directory

SPARK_JARS = Path(pyspark.__file__).parent / "jars"
HEAD = """<?xml version="1.0"?>
<!DOCTYPE Configure PUBLIC "-//Jetty//Configure//EN" "https://www.eclipse.org/jetty/configure_10_0.dtd">
"""


@attrs.define
class JavaObjects:
    """A server on loopback that is made of Java's objects, as Jetty's XML describes them. Its own files are in `directory`."""

    directory: Path
    port: int = attrs.field(factory=free_port)
    _process: Process | None = None
    xml: ClassVar[str]
    """Template with {directory} and {port}."""
    jars: ClassVar[str]
    """Directory of the cache with its jars, jetty-xml among them."""

    def start(self) -> None:
        """Start it, and wait until it takes connections. Raises PeerFailed."""
        file = self.directory / "server.xml"
        file.write_text(HEAD + self.xml.format(directory=self.directory, port=self.port))
        options = [f"-D{name}={value}" for name, value in self.properties.items()]
        classpath = ":".join((f"{jar_directory(self.jars)}/*", *map(str, self.more_jars)))
        main = "org.eclipse.jetty.xml.XmlConfiguration"
        command = ["java", *QUICK_START, *JAVA_OPTIONS, "-Xmx256m", *options, "-cp", classpath, main, str(file)]
        self._process = Process.start(command, self.directory / "server.log", self.directory)
        self._process.wait_listening(self.port)

    def stop(self) -> None:
        if self._process is not None:
            self._process.stop()

    @property
    def more_jars(self) -> list[Path]:
        return []

    @property
    def properties(self) -> dict[str, str]:
        return {}
