"""A broker that asks who it is and takes encrypted connections alone: Spark reads and writes, and no secret comes to light."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from interop.peers.process import Process, free_port
from tests.spark.live.brokers import Broker
from tests.support.certificates import Authority
from twisted_mq.protocol.wire.signature import Credentials
from twisted_mq.spark.live.connection import Dialling

SECRET = "planted-secret-of-root"


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path / "certificates")


@pytest.fixture
def secured(tmp_path: Path, authority: Authority) -> Iterator[Broker]:
    """The daemon, with the settings that an operator writes."""
    files = authority.issue("server")
    name_server, port = free_port(), free_port()
    settings = {
        "brokerName": "broker-a", "listenPort": port, "bindAddress": "127.0.0.1", "brokerIP1": "127.0.0.1",
        "storePathRootDir": tmp_path / "store", "mappedFileSizeCommitLog": 1 << 24,
        "authenticationEnabled": "true", "authorizationEnabled": "true",
        "initAuthenticationUser": json.dumps({"username": "root", "password": SECRET}),
        "innerClientAuthenticationCredentials": json.dumps({"accessKey": "inner", "secretKey": "of-the-servers"}),
        "tls.server.mode": "enforcing", "tls.server.certPath": files.certificate, "tls.server.keyPath": files.key,
        "tls.enable": "true",
    }  # fmt: skip
    config = tmp_path / "broker.conf"
    config.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
    command = [str(Path(sys.executable).parent / "twistd"), "--nodaemon", "--pidfile=", "mqbroker"]
    command += ["--embedded-namesrv", str(name_server), "--config", str(config)]
    process = Process.start(command, tmp_path / "broker.log", tmp_path)
    try:
        process.wait_listening(port)
        dialling = Dialling(tls=True, tls_ca_file=authority.path, credentials=Credentials("root", SECRET))
        yield Broker(f"127.0.0.1:{name_server}", f"127.0.0.1:{port}", dialling=dialling)
    finally:
        process.stop()


def texts_below(folder: Path) -> str:
    return "\n".join(path.read_text(errors="replace") for path in folder.rglob("*") if path.is_file())


def test_rows_go_round_and_the_secret_shows_nowhere(
    session: SparkSession,
    secured: Broker,
    authority: Authority,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    source, target = secured.topic(2), secured.topic(2)
    sent = [b"%03d" % number for number in range(200)]
    secured.send(source, sent)
    access = {
        "nameServer": secured.name_server, "tls": "true", "tlsCaFile": authority.path, "accessKey": "root", "secretKey": SECRET,
    }  # fmt: skip
    session.conf.set("spark.sql.streaming.numRecentProgressUpdates", "10")
    rows = session.read.format("rocketmq").options(**access, topic=source).load()
    rows.explain("formatted")
    rows.select("body").write.format("rocketmq").options(**access, topic=target).mode("append").save()
    stream = session.readStream.format("rocketmq").options(**access, topic=target, startingOffsets="earliest").load()
    query = (
        stream.select("body", "queueOffset")
        .writeStream.format("parquet")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start(str(tmp_path / "rows"))
    )
    assert query.awaitTermination(120)
    query.explain(True)
    found = session.read.parquet(str(tmp_path / "rows"))
    assert sorted(bytes(row.body) for row in found.collect()) == sent
    progress = json.dumps(query.lastProgress, default=str)
    shown = [progress, texts_below(tmp_path / "checkpoint"), *capfd.readouterr()]
    with pytest.raises(AnalysisException) as misspelt:
        session.read.format("rocketmq").options(nameServer="n:1", topic="T", secretKy=SECRET).load()
    assert "did you mean secretKey?" in str(misspelt.value)
    wrong = {**access, "secretKey": f"not-{SECRET}"}
    with pytest.raises(Exception, match="code 16") as refused:
        session.read.format("rocketmq").options(**wrong, topic=source).load().collect()
    shown += [str(misspelt.value), str(refused.value), *capfd.readouterr()]
    assert [text for text in shown if SECRET in text] == []
    assert source in shown[0] or target in shown[0]
