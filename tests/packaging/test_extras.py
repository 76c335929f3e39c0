"""Programs with each extra, in environments without other packages, and errors without the extra."""

from __future__ import annotations

import signal
import subprocess
from configparser import ConfigParser
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.packaging.conftest import ROOT
from tests.packaging.daemons import RunningDaemon, environment, run_twistd
from twisted_mq.extras import EXTRAS
from twisted_mq.protocol.flags import MessageSysFlag
from twisted_mq.protocol.layouts.host import pack_host
from twisted_mq.protocol.layouts.record_codec import encode_record
from twisted_mq.protocol.messages.compression import CompressionType, compress

HEAVY = "numpy sqlglot rich click pyspark pyarrow pandas matplotlib lz4 zstandard javaproperties sortedcontainers"
SERVER = "javaproperties, numpy, sortedcontainers, sqlglot"
OF_BROKER = "numpy, sortedcontainers, sqlglot"
"""Packages of the extra `broker`."""
HELLO = """
import sys
from twisted.internet import reactor, defer
from twisted_mq.client import Message, Producer

async def main():
    producer = Producer(reactor, group="orders", namesrv=sys.argv[1])
    await producer.start()
    print((await producer.send(Message(topic="Orders", body=b"hello"))).status.name)
    await producer.stop()
    reactor.stop()

reactor.callWhenRunning(lambda: defer.ensureDeferred(main()))
reactor.run()
"""


COMPRESSORS = (("LZ4", "lz4", "lz4"), ("ZSTD", "zstandard", "zstd"))


def record_in(kind: CompressionType) -> bytes:
    """A stored message whose body is compressed."""
    body = compress(b"x" * 5000, kind)
    flags = MessageSysFlag.COMPRESSED_FLAG | kind.sys_flag
    host = pack_host("127.0.0.1", 10911)
    return encode_record(b"T", body, b"", 0, 0, 0, 1, host, 1, host, sys_flag=flags)


def run(python: str, folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [python, *words], cwd=folder, env=environment(folder), capture_output=True, text=True, timeout=60
    )


def command(python: str, name: str) -> str:
    return str(Path(python).with_name(name))


def hint(part: str, missing: str, extra: str) -> str:
    return f'{part} needs {missing}: pip install "rocketmq-twisted[{extra}]"'


def test_the_base_has_nothing_heavy(installed, tmp_path):
    code = f"from importlib.util import find_spec as f; print([n for n in {HEAVY.split()} if f(n)])"
    assert run(installed(""), tmp_path, "-c", code).stdout == "[]\n"


def test_client_and_mqadmin_run_on_the_base(installed, tmp_path):
    base, broker = installed(""), installed("broker")
    (tmp_path / "n.conf").write_text("listenPort=0\nbindAddress=127.0.0.1\n")
    (tmp_path / "hello.py").write_text(HELLO)
    with RunningDaemon(broker, tmp_path, "mqnamesrv", "--config", "n.conf") as namesrv:
        name_server = f"127.0.0.1:{namesrv.wait_for('name server ready').rpartition('port=')[2]}"
        words = ("mqbroker", "-n", name_server, "--port", "0", "--store", "store", "--bind", "127.0.0.1")
        with RunningDaemon(broker, tmp_path, *words) as daemon:
            daemon.wait_for("registers as")
            namesrv.wait_for("broker registered")
            done = run(base, tmp_path, "hello.py", name_server)
            assert (done.stdout, done.stderr) == ("SEND_OK\n", "")
            listed = subprocess.run(
                [command(base, "mqadmin"), "topicList", "-n", name_server],
                env=environment(tmp_path), capture_output=True, text=True,
            )  # fmt: skip
            assert "Orders" in listed.stdout.split()
            settings = subprocess.run(
                [command(base, "mqadmin"), "getBrokerConfig", "-n", name_server, "-c", "DefaultCluster"],
                env=environment(tmp_path), capture_output=True, text=True,
            )  # fmt: skip
            assert hint("settings of a server", "javaproperties", "cli") in settings.stderr
            assert daemon.terminate() in (0, -signal.SIGTERM)


def test_broker_says_what_to_install(installed, tmp_path):
    done = run_twistd(installed(""), tmp_path, "mqbroker", "--store", "store")
    message = f"mqbroker: {hint('the broker', SERVER, 'broker')}\n"
    assert (done.returncode, done.stdout, done.stderr) == (1, "", message)


def test_name_server_says_what_to_install(installed, tmp_path):
    done = run_twistd(installed(""), tmp_path, "mqnamesrv")
    message = f"mqnamesrv: {hint('the name server', 'javaproperties, sortedcontainers', 'broker')}\n"
    assert (done.returncode, done.stdout, done.stderr) == (1, "", message)


COMPRESSED = """
import sys
from twisted_mq.client import CompressionType, ConsumerOptions, SendLimits
from twisted_mq.client.core.pull_result import readable_messages
from twisted_mq.protocol.errors import ProtocolError

for kind in CompressionType:
    try:
        SendLimits(compress_type=kind)
    except ProtocolError as error:
        print(error)
try:
    print(len(readable_messages(bytes.fromhex(sys.argv[1]))))
except ProtocolError as error:
    print(error)
"""


def test_a_missing_compressor_says_what_to_install_and_passes_over_no_message(installed, tmp_path):
    stored = record_in(CompressionType.ZSTD).hex()
    lines = run(installed(""), tmp_path, "-c", COMPRESSED, stored).stdout.splitlines()
    needs = [f'{kind} needs {name}: pip install "rocketmq-twisted[{extra}]"' for kind, name, extra in COMPRESSORS]
    assert lines == [*needs, needs[1]]
    assert run(installed("zstd"), tmp_path, "-c", COMPRESSED, stored).stdout.splitlines() == [needs[0], "1"]


def test_mq_says_what_to_install(installed, tmp_path):
    done = run(installed(""), tmp_path, command(installed(""), "mq"), "up")
    assert (done.returncode, done.stdout, done.stderr) == (
        1,
        "",
        f"mq: {hint('mq', 'click, javaproperties, rich', 'cli')}\n",
    )


@pytest.mark.parametrize(
    ("words", "part", "missing", "extra"),
    [
        (["up", "--temporary"], "twisted_mq.testing", OF_BROKER, "broker"),
        (["store", "verify", "."], "mq store", OF_BROKER, "broker"),
        (["demo"], "mq demo", "numpy, pyarrow, pyspark", "spark"),
    ],
)
def test_commands_say_what_to_install(installed, tmp_path, words, part, missing, extra):
    python = installed("cli")
    done = run(python, tmp_path, command(python, "mq"), *words)
    assert (done.returncode, done.stderr) == (1, f"mq: {hint(part, missing, extra)}\n")


@pytest.mark.parametrize(
    ("module", "name", "missing", "extra"),
    [
        ("twisted_mq.testing", "EmbeddedServer", SERVER, "broker"),
        ("twisted_mq.spark.source", "*", "numpy, pyarrow, pyspark", "spark"),
    ],
)
def test_imports_say_what_to_install(installed, tmp_path, module, name, missing, extra):
    done = run(installed(""), tmp_path, "-c", f"from {module} import {name}")
    part = module.removesuffix(".source")
    assert done.stderr.splitlines()[-1] == f"twisted_mq.extras.MissingExtra: {hint(part, missing, extra)}"


def test_what_is_asked_for_is_in_the_extra():
    setup = ConfigParser()
    setup.read(ROOT / "setup.cfg")
    wanted = setup["options.extras_require"]
    listed = {name: names(wanted[name]) for name in EXTRAS}
    distributions = packages_distributions()
    found = {
        name: [any(canonicalize_name(one) in listed[name] for one in distributions[module]) for module in modules]
        for name, modules in EXTRAS.items()
    }
    assert [name for name, each in found.items() if not all(each)] == []


def names(lines: str) -> set[str]:
    return {canonicalize_name(Requirement(line).name) for line in lines.splitlines() if line and line[0] != "#"}
