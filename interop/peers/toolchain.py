"""Apache's jars and the compiled peer programs: where they lie, how they come there, what is missing.

Everything is kept in `$XDG_CACHE_HOME/mq-peer` (`~/.cache/mq-peer`): `lib/` holds the jars of pom.xml, the other directories
of JARS those of their files, `interop-<hash of the sources>/` the classes of java/.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path

HERE = Path(__file__).resolve().parent
SOURCES = HERE / "java"
VERSION = "5.3.3"
ROCKETMQ, ZOOKEEPER, PROXY, KAFKA, ICEBERG, HDFS = "lib", "zookeeper", "proxy", "kafka", "iceberg", "hdfs"
GRPC_VERSIONS = ("5.2.0", "5.0.7")
"""Versions of Apache's gRPC client for Java; the program is compiled with the oldest, the last."""
JARS = {
    ROCKETMQ: ("pom.xml", tuple(f"rocketmq-{part}-{VERSION}.jar" for part in ("namesrv", "broker", "client", "tools"))),
    ZOOKEEPER: ("zookeeper.xml", ("zookeeper-3.9.3.jar", "metrics-core-4.1.12.1.jar", "snappy-java-1.1.10.5.jar")),
    KAFKA: ("kafka.xml", ("kafka_2.13-4.1.2.jar", "kafka-clients-4.1.2.jar")),
    HDFS: ("hdfs.xml", ("hadoop-client-minicluster-3.5.0.jar", "jetty-xml-11.0.26.jar", "jcl-over-slf4j-2.0.17.jar")),
    ICEBERG: ("iceberg.xml", ("iceberg-core-1.10.0.jar", "iceberg-core-1.10.0-tests.jar", "jetty-xml-11.0.26.jar")),
    PROXY: ("grpc_peers/proxy.xml", (f"rocketmq-proxy-{VERSION}.jar", "grpc-services-1.53.0.jar")),
    **{f"grpc-java-{one}": ("grpc_peers/client.xml", (f"rocketmq-client-java-{one}.jar",)) for one in GRPC_VERSIONS},
}
"""Directory of the cache -> what names its jars, and those of them that show that all are there."""

QUICK_START = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
"""Options for a quick start instead of top speed."""

JAVA_OPTIONS = (
    "-XX:-UsePerfData",
    "-Djava.net.preferIPv4Stack=true",
    "--add-exports=java.base/jdk.internal.ref=ALL-UNNAMED",
    "--add-exports=java.base/sun.nio.ch=ALL-UNNAMED",
    "--add-opens=java.base/java.nio=ALL-UNNAMED",
)
"""Among them what Apache's start scripts open to the store."""

_start_options = list(QUICK_START)


def use_top_speed() -> None:
    """From now on in this process: virtual machines compile as far as they can, and Python's programs keep their bytecode, as
    installed ones do."""
    _start_options.clear()
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


def cache_directory() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "mq-peer"


def jar_directory(which: str = ROCKETMQ) -> Path:
    return cache_directory() / which


def missing_jars() -> list[str]:
    """The directories of JARS that are not filled."""
    return [which for which, (_, names) in JARS.items() if not all((jar_directory(which) / n).is_file() for n in names)]


def missing_tools() -> list[str]:
    """Commands that the Java peers need and this machine lacks; Maven only counts while there are jars to fetch."""
    wanted = ["java", "javac", "mvn"] if missing_jars() else ["java", "javac"]
    return [tool for tool in wanted if shutil.which(tool) is None]


def fetch_jars() -> None:
    """Copy what is missing of JARS into the cache. Raises CalledProcessError."""
    for which in missing_jars():
        _fetch(which)


def _fetch(which: str) -> None:
    cache_directory().mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache_directory()) as scratch:
        fetched = Path(scratch) / which
        maven = ["mvn", "-q", "-B", "-f", str(HERE / JARS[which][0]), "dependency:copy-dependencies"]
        maven.append(f"-Dclient.version={which.rpartition('-')[2]}")
        subprocess.run([*maven, f"-DoutputDirectory={fetched}"], check=True, capture_output=True, text=True)
        if which in missing_jars():
            shutil.rmtree(jar_directory(which), ignore_errors=True)
            _move(fetched, jar_directory(which))


def _sources() -> list[Path]:
    return sorted(SOURCES.glob("*.java"))


def digest(sources: Iterable[Path]) -> str:
    """Short hash of files: a change of one makes a new directory in the cache."""
    return hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()[:16]


def sources_digest() -> str:
    """That of the peer programs' sources."""
    return digest(_sources())


def _move(made: Path, place: Path) -> None:
    """Put a directory where it belongs, unless another process has put its own there meanwhile. Raises OSError."""
    try:
        made.rename(place)
    except OSError:
        if not place.is_dir():
            raise


def made_once(name: str, make: Callable[[Path], object]) -> Path:
    """A directory of the cache, filled by `make` where it is not there. Raises what `make` does."""
    place = cache_directory() / name
    if not place.is_dir():
        cache_directory().mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache_directory()) as scratch:
            made = Path(scratch) / "made"
            make(made)
            _move(made, place)
    return place


def compile_java(classpath: str, sources: list[Path], classes: Path) -> None:
    """Raises CalledProcessError where javac fails."""
    javac = ["javac", "-nowarn", "-cp", classpath, "-d", str(classes)]
    subprocess.run([*javac, *map(str, sources)], check=True, capture_output=True, text=True)


def compile_programs() -> Path:
    """Directory of the peer programs' classes, compiled once for each state of the sources.

    Raises CalledProcessError where javac fails.
    """
    return made_once(
        f"interop-{sources_digest()}", lambda classes: compile_java(f"{jar_directory()}/*", _sources(), classes)
    )


def java_command(
    home: Path, heap: str, main_class: str, *arguments: str, classes: Path | None = None, jars: str = ROCKETMQ
) -> list[str]:
    """Command line of one virtual machine whose home directory, and so its logs and local offsets, is `home`."""
    classpath = f"{jar_directory(jars)}/*" + (f":{classes}" if classes else "")
    properties = [f"-Duser.home={home}", f"-Drocketmq.home.dir={home}", f"-Xmx{heap}"]
    return ["java", *_start_options, *JAVA_OPTIONS, *properties, "-cp", classpath, main_class, *arguments]
