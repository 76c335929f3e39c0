"""Files for operators: configurations that the servers accept, units and an image that start them, dashboards of existing
metrics."""

from __future__ import annotations

import configparser
import json
import os
import platform
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from twisted.logger import capturedLogs

from twisted_mq.broker.metrics import builtin, exporter, own, pops, timer
from twisted_mq.broker.tap import Options as BrokerCommand
from twisted_mq.metrics import process
from twisted_mq.namesrv.tap import Options as NamesrvCommand
from twisted_mq.proxy.tap import Options as ProxyCommand

DEPLOY = Path(__file__).parents[2] / "deploy"
COMMANDS = {"mqbroker": BrokerCommand, "mqnamesrv": NamesrvCommand}
CONFIGS = {"mqbroker": "broker.conf", "mqnamesrv": "namesrv.conf"}
OUTSIDE, LOOPBACK = "0.0.0.0", "127.0.0.1"
FIGURES = {
    *(family.shown_name for module in (builtin, timer, pops, exporter, own, process) for family in module.FAMILIES),
    *("up", "process_open_fds", "process_max_fds", "process_cpu_seconds_total", "process_resident_memory_bytes"),
}
LANGUAGE = {"sum", "by", "max", "rate", "increase", "topk", "and", "or", "unless", "on"}
"""Words of PromQL that are no figures."""


def figures(expression: str) -> set[str]:
    """The figures that an expression of PromQL reads."""
    bare = re.sub(r"\{[^}]*\}|\b(?:by|on) \([^)]*\)|\"[^\"]*\"", "", expression)
    return set(re.findall(r"[a-z_]\w+", re.sub(r"\[\w+\]", "", bare))) - LANGUAGE


def expressions() -> Iterator[str]:
    for group in yaml.safe_load((DEPLOY / "alerts.yml").read_text())["groups"]:
        yield from (rule["expr"] for rule in group["rules"])
    for panel in json.loads((DEPLOY / "grafana.json").read_text())["panels"]:
        yield from (target["expr"] for target in panel["targets"])


@pytest.mark.parametrize("expression", list(expressions()))
def test_rules_and_panels_read_figures_that_there_are(expression: str) -> None:
    names = figures(expression)
    assert names and names <= FIGURES


KNOWN_QUERIES = (
    "sum(rocketmq_producer_tps) by (cluster) >= 10",
    "sum(rocketmq_consumer_tps) by (cluster) < 1",
    "rocketmq_group_get_latency_by_storetime > 1000",
    "(sum(rocketmq_producer_offset) by (topic) - on(topic) group_right sum(rocketmq_consumer_offset) by (group,topic))"
    " - ignoring(group) group_left sum (avg_over_time(rocketmq_producer_tps[5m])) by (topic)*5*60 > 0",
    "sum(rocketmq_consumer_lag_messages) by (cluster, topic, consumer_group)",
    "max(rocketmq_consumer_lag_latency_milliseconds) by (cluster, topic, consumer_group)",
    "sum(rate(rocketmq_messages_in_total[1m])) by (cluster, node_id, topic)",
    "sum(rate(rocketmq_messages_out_total[1m])) by (cluster, node_id, consumer_group)",
    "histogram_quantile(0.99, sum(rate(rocketmq_rpc_latency_milliseconds_bucket[1m])) by (le, request_code))",
)
"""Names in rules of rocketmq-exporter, and in dashboards of the built-in exporter."""
COMMON = {"cluster", "node_type", "node_id"}
LABELS = {
    family.shown_name: set(family.labels) | (COMMON if module is not exporter else set())
    for module in (builtin, timer, pops, exporter, own)
    for family in module.FAMILIES
}


@pytest.mark.parametrize("query", KNOWN_QUERIES)
def test_queries_of_dashboards_that_there_are_find_their_figures_and_labels(query: str) -> None:
    names = {name.removesuffix("_bucket") for name in re.findall(r"rocketmq_\w+", query)}
    grouped = re.findall(r"\b(?:by|on|ignoring) ?\(([^)]*)\)", query)
    labels = {label.strip() for part in grouped for label in part.split(",")} - {"le"}
    assert names <= LABELS.keys()
    assert labels <= set().union(*(LABELS[name] for name in names))


@pytest.mark.parametrize("server", COMMANDS)
def test_a_server_takes_its_file_without_a_word_about_a_key(server: str) -> None:
    options = COMMANDS[server]()
    with capturedLogs() as said:
        options.parseOptions(["--config", str(DEPLOY / CONFIGS[server])])
    assert options.settings.shows_metrics
    assert [event["log_format"] for event in said] == []


@pytest.mark.parametrize("server", COMMANDS)
def test_an_image_takes_its_file_and_shows_its_metrics_outside(server: str) -> None:
    settings = {}
    for folder in (DEPLOY, DEPLOY / "image"):
        options = COMMANDS[server]()
        with capturedLogs() as said:
            options.parseOptions(["--config", str(folder / CONFIGS[server])])
        assert [event["log_format"] for event in said] == []
        settings[folder.name] = options.settings
    assert settings["deploy"].metrics_prom_exporter_host == LOOPBACK
    assert settings["image"].metrics_prom_exporter_host == OUTSIDE


def test_servers_of_one_machine_share_no_port_and_know_each_other() -> None:
    settings = {}
    for server, command in COMMANDS.items():
        options = command()
        options.parseOptions(["--config", str(DEPLOY / CONFIGS[server])])
        settings[server] = options.settings
    ports = [port for one in settings.values() for port in (one.listen_port, one.metrics_prom_exporter_port)]
    assert len(set(ports)) == len(ports)
    assert settings["mqbroker"].name_servers == [f"{LOOPBACK}:{settings['mqnamesrv'].listen_port}"]


def test_the_proxy_takes_its_file() -> None:
    unit = configparser.RawConfigParser(strict=False)
    unit.optionxform = str  # type: ignore[assignment, method-assign]
    unit.read(DEPLOY / "systemd" / "mqproxy.service")
    command = shlex.split(unit["Service"]["ExecStart"])
    assert command[3:] == ["mqproxy", "--config", "/etc/rocketmq/rmq-proxy.json"]
    options = ProxyCommand()
    with capturedLogs() as said:
        options.parseOptions(["--config", str(DEPLOY / "rmq-proxy.json")])
    assert [event["log_format"] for event in said] == []


def test_services_of_compose_publish_each_port_once_under_its_own_number() -> None:
    services = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]
    published = [str(port).split(":")[-2:] for one in services.values() for port in one.get("ports", [])]
    assert len({outside for outside, _ in published}) == len(published) == 10
    assert all(outside == inside for outside, inside in published)
    volumes = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["volumes"]
    used = [one.partition(":")[0] for service in services.values() for one in service.get("volumes", [])]
    assert sorted(used) == sorted(volumes)


@pytest.mark.parametrize("server", COMMANDS)
def test_a_unit_starts_a_server_with_options_that_it_has(server: str) -> None:
    unit = configparser.RawConfigParser(strict=False)
    unit.optionxform = str  # type: ignore[assignment, method-assign]
    unit.read(DEPLOY / "systemd" / f"{server}.service")
    command = shlex.split(unit["Service"]["ExecStart"])
    assert command[:4] == ["/opt/rocketmq/venv/bin/twistd", "--nodaemon", "--pidfile=", server]
    options = [str(DEPLOY / CONFIGS[server]) if one.startswith("/etc/") else one for one in command[4:]]
    COMMANDS[server]().parseOptions(options)
    assert unit["Service"]["User"] == "rocketmq"


@pytest.mark.parametrize(
    ("arguments", "environment", "started"),
    [
        (["mqnamesrv"], {}, "--nodaemon --pidfile= mqnamesrv --config /etc/rocketmq/namesrv.conf"),
        (
            ["mqbroker", "--set", "brokerName=b"],
            {"NAMESRV_ADDR": "one:9876;two:9876"},
            "--nodaemon --pidfile= mqbroker --config /etc/rocketmq/broker.conf --namesrv one:9876;two:9876"
            " --set brokerName=b",
        ),
        (
            ["sh", "mqbroker", "-n", "one:9876", "-c", "/conf/broker.conf", "--set", "brokerName=b"],
            {"NAMESRV_ADDR": "two:9876"},
            "--nodaemon --pidfile= mqbroker --config /conf/broker.conf --namesrv one:9876 --set brokerName=b",
        ),
        (
            ["sh", "mqnamesrv"],
            {"NAMESRV_ADDR": "two:9876"},
            "--nodaemon --pidfile= mqnamesrv --config /etc/rocketmq/namesrv.conf",
        ),
        (
            ["mqbroker", "--set", "brokerName=b"],
            {"METRICS_PORT": "5560"},
            "--nodaemon --pidfile= mqbroker --config /etc/rocketmq/broker.conf"
            " --set metricsPromExporterPort=5560 --set brokerName=b",
        ),
        (["twistd", "--version"], {}, "--version"),
    ],
)
def test_the_image_starts_what_it_is_told(
    arguments: list[str], environment: dict[str, str], started: str, tmp_path: Path
) -> None:
    stand_in = tmp_path / "twistd"
    stand_in.write_text('#!/bin/sh\necho "$@"\n')
    stand_in.chmod(0o755)
    done = subprocess.run(
        ["/bin/sh", str(DEPLOY / "start.sh"), *arguments],
        env={**environment, "PATH": f"{tmp_path}{os.pathsep}/bin:/usr/bin"},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout == started + "\n"


def test_variables_of_apaches_virtual_machine_are_named_and_have_no_effect(tmp_path: Path) -> None:
    stand_in = tmp_path / "twistd"
    stand_in.write_text('#!/bin/sh\necho "$@"\n')
    stand_in.chmod(0o755)
    done = subprocess.run(
        ["/bin/sh", str(DEPLOY / "start.sh"), "mqnamesrv"],
        env={"JAVA_OPT_EXT": "-Xmx4g; exit 1", "PATH": f"{tmp_path}{os.pathsep}/bin:/usr/bin"},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stderr == "JAVA_OPT_EXT has no effect: there is no virtual machine\n"
    assert done.stdout.startswith("--nodaemon")


@pytest.mark.skipif(
    (sys.platform, platform.machine()) != ("linux", "x86_64"), reason="hadolint's wheel is for Linux on x86_64"
)
def test_hadolint_finds_nothing_in_the_dockerfile() -> None:
    hadolint = Path(sys.executable).with_name("hadolint")
    done = subprocess.run([hadolint, "--no-color", DEPLOY / "Dockerfile"], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "")


def test_the_image_copies_what_there_is_and_runs_without_root() -> None:
    steps = re.sub(r"\\\n", " ", (DEPLOY / "Dockerfile").read_text()).splitlines()
    steps = [step for step in steps if step and not step.startswith("#")]
    copied = [word for step in steps if step.startswith("COPY") and "--from" not in step
              for word in step.split()[1:-1] if not word.startswith("--")]  # fmt: skip
    assert copied == [".", "deploy/image/namesrv.conf", "deploy/image/broker.conf", "deploy/start.sh"]
    assert all((DEPLOY.parent / one).exists() for one in copied)
    users = [step for step in steps if step.startswith("USER")]
    assert users == ["USER 3000"]
    assert {step.split()[0] for step in steps} <= {
        "FROM", "WORKDIR", "COPY", "RUN", "ENV", "USER", "VOLUME", "EXPOSE", "HEALTHCHECK", "ENTRYPOINT", "CMD",
    }  # fmt: skip
