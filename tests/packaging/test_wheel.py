"""The plugins in an editable install and in an installed wheel; what the wheel holds."""

from __future__ import annotations

import email
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.packaging.conftest import ROOT
from tests.packaging.daemons import environment, run_twistd

PLUGINS = [
    "mqbroker         A RocketMQ broker",
    "mqnamesrv        A RocketMQ name server",
    "mqproxy          A RocketMQ proxy for gRPC clients",
]


@pytest.fixture(params=["editable", "wheel"])
def python(request: pytest.FixtureRequest) -> str:
    return sys.executable if request.param == "editable" else request.getfixturevalue("installed_python")


def test_twistd_lists_both_daemons(python, tmp_path):
    printed = run_twistd(python, tmp_path, "--help").stdout.splitlines()
    assert [line.strip() for line in printed if line.strip().startswith("mq")] == PLUGINS


@pytest.mark.parametrize("daemon", ["mqnamesrv", "mqbroker"])
def test_help_shows_options_with_an_example(python, tmp_path, daemon):
    done = run_twistd(python, tmp_path, daemon, "--help")
    assert done.returncode == 0
    for expected in ("--config=", "--port=", "--set=", f"Example: twistd --nodaemon --pidfile= {daemon}"):
        assert expected in done.stdout


def test_configuration_facts_are_installed(python, tmp_path):
    (tmp_path / "b.conf").write_text("brokerNam=a\n")
    done = run_twistd(python, tmp_path, "mqbroker", "--strict", "--config", "b.conf")
    reason = "unknown key, did you mean brokerName?; --strict refuses it"
    message = f"mqbroker: b.conf line 1: brokerNam=a: {reason}\n"
    assert (done.returncode, done.stdout, done.stderr) == (1, "", message)


def test_installed_wheel_uses_its_own_files(installed_python, tmp_path):
    code = "import twisted_mq, twisted_mq.protocol, twisted_mq.storage, twisted_mq.spark as spark; print("
    code += "*(m.__file__ for m in (twisted_mq, twisted_mq.protocol, twisted_mq.storage, spark)), sep='\\n')"
    printed = subprocess.run(
        [installed_python, "-c", code], cwd=tmp_path, env=environment(tmp_path), capture_output=True, text=True
    )
    environment_folder = str(Path(installed_python).parent.parent)
    assert printed.returncode == 0, printed.stderr
    assert all(line.startswith(environment_folder) for line in printed.stdout.splitlines())


def test_wheel_holds_packages_plugins_and_nothing_else(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    tops = {name.partition("/")[0] for name in names if ".dist-info/" not in name}
    assert tops == {"twisted_mq", "twisted", "pyspark_rocketmq"}
    assert {
        "twisted_mq/protocol/codes.py",
        "twisted_mq/storage/log/commit_log.py",
        "twisted_mq/spark/session.py",
    } <= set(names)
    assert [name for name in names if name.startswith("twisted/")] == ["twisted/plugins/mq_plugins.py"]
    assert {"twisted_mq/config/known_keys.json", "twisted_mq/py.typed"} <= set(names)
    console = {"templates/layout.html", "static/console.css", "static/console.js", "static/icon.svg"}
    assert {f"twisted_mq/console/{name}" for name in console} <= set(names)


def test_package_page_has_absolute_links(wheel):
    archive = zipfile.ZipFile(wheel)
    (metadata,) = [name for name in archive.namelist() if name.endswith("/METADATA")]
    facts = email.message_from_bytes(archive.read(metadata))
    urls = dict(line.split(", ") for line in facts.get_all("Project-URL"))
    assert set(urls) == {"Source", "Documentation", "Changelog", "Issues"}
    assert facts["Description-Content-Type"] == "text/markdown"
    shown = facts.get_payload()
    assert re.findall(r"\]\((?!https?:)[^)]*\)", shown) == []
    pages, pictures = (
        re.findall(rf"{urls['Source']}/blob/main/([^)#]+)", shown),
        re.findall(r"/raw/main/([^)]+)\)", shown),
    )
    assert (len(pages) > 5, len(pictures)) == (True, 2)
    assert [path for path in pages + pictures if not (ROOT / path).is_file()] == []


def test_wheel_brings_its_licence_and_says_what_it_is(wheel):
    archive = zipfile.ZipFile(wheel)
    (licence,) = [name for name in archive.namelist() if name.endswith("/LICENSE")]
    assert archive.read(licence) == (ROOT / "LICENSE").read_bytes()
    (metadata,) = [name for name in archive.namelist() if name.endswith("/METADATA")]
    facts = email.message_from_bytes(archive.read(metadata))
    assert (facts["License"], facts["License-File"], facts["Requires-Python"]) == ("Apache-2.0", "LICENSE", ">=3.11")
    assert facts.get_all("Provides-Extra") == [
        "lz4",
        "zstd",
        "broker",
        "cli",
        "ordered",
        "access",
        "tls",
        "metrics",
        "console",
        "otlp",
        "opentelemetry",
        "spark",
        "lake",
        "connect",
        "proxy",
        "migrate",
        "pcap",
        "all",
        "dev",
    ]
    assert "Typing :: Typed" in facts.get_all("Classifier")
