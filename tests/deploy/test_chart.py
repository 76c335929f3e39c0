"""The Helm chart: Helm itself lints and renders it, Kubernetes' schemas know every field, and its pods live as the page says."""

from __future__ import annotations

import copy
import re
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest
import yaml

from interop.peers.process import wait_until
from tests.deploy.containers import Container
from tests.deploy.ground import DEPLOY, Ground, new_ports
from twisted_mq.blocking import Message, Producer
from twisted_mq.client.core.errors import ClientError

helm = pytest.importorskip("helm_python", reason="Helm's wheel is for Linux on x86_64")
kubernetes = pytest.importorskip("kubernetes_validate", reason="comes with Helm's wheel")

CHART = DEPLOY / "helm" / "rocketmq-twisted"
VERSIONS = ("1.25", "1.31", "1.34")
PORTS = {"9876", "10911", "10912", "5557", "8090"}
TOPIC = "Orders"


def rendered(values: dict[str, Any] | None = None) -> list[dict[str, Any]]:
    with helm.Chart.load(str(CHART)) as chart:
        texts = chart.render(values or {}, name="mq", namespace="prod")
    manifests = [text for name, text in texts.items() if name.endswith(".yaml")]
    return [one for text in manifests for one in yaml.safe_load_all(text) if one is not None]


def test_helm_finds_nothing() -> None:
    assert helm.lint(str(CHART)) == {"total_charts_linted": 1, "messages": [], "errors": []}


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    "values",
    [{}, {"broker": {"groups": 1, "slaves": 0}, "console": {"enabled": False}}, {"storageClassName": "fast"}],
    ids=["default", "smallest", "class"],
)
def test_kubernetes_knows_every_field(version: str, values: dict[str, Any]) -> None:
    for manifest in rendered(values):
        kubernetes.validate(manifest, version, strict=True)


def test_the_schemas_find_a_field_that_there_is_not() -> None:
    (manifest,) = [
        one for one in rendered() if one["metadata"]["name"] == "mq-broker-0" and one["kind"] == "StatefulSet"
    ]
    wrong = copy.deepcopy(manifest)
    wrong["spec"]["template"]["spec"]["terminationGracePeriod"] = 3
    with pytest.raises(kubernetes.ValidationError):
        kubernetes.validate(wrong, VERSIONS[-1], strict=True)


@pytest.mark.parametrize(
    "values", [{"broker": {"role": "SLAVE"}}, {"broker": {"groups": 0}}, {"namesrv": {"replicas": 0}}]
)
def test_values_that_mean_nothing_are_refused(values: dict[str, Any]) -> None:
    with helm.Chart.load(str(CHART)) as chart, pytest.raises(helm.HelmError):
        chart.validate_schema(values)


def test_selectors_fit_the_pods_and_names_are_told_apart() -> None:
    manifests = rendered()
    assert len({(one["kind"], one["metadata"]["name"]) for one in manifests}) == len(manifests)
    pods = [one["spec"]["template"]["metadata"]["labels"] for one in manifests if "template" in one.get("spec", {})]
    for one in manifests:
        selector = one.get("spec", {}).get("selector", {})
        wanted = selector.get("matchLabels", selector)
        if wanted:
            assert sum(wanted.items() <= labels.items() for labels in pods) == 1, one["metadata"]["name"]


# pods as processes


@attrs.define
class Pod:
    """A pod of a StatefulSet, on a ground of its own."""

    spec: dict[str, Any]
    container: Container

    @classmethod
    def of(
        cls, stateful_set: dict[str, Any], ordinal: int, folder: Path, addresses: dict[str, str], config: str
    ) -> Pod:
        spec = stateful_set["spec"]["template"]["spec"]
        (inside,) = spec["containers"]
        name = f"{stateful_set['metadata']['name']}-{ordinal}"
        port = addresses.get(f"{name}.mq-namesrv:9876", "").rpartition(":")[2]
        ports = new_ports(PORTS, {"9876": port} if port else {})
        fields = {"metadata.name": name, "status.podIP": "127.0.0.1"}
        variables = {
            one["name"]: one["value"] if "value" in one else fields[one["valueFrom"]["fieldRef"]["fieldPath"]]
            for one in inside.get("env", [])
        }
        ground = Ground.new(folder / name, ports, addresses)
        container = Container.of_image(name, ground, inside.get("command") or inside["args"], variables)
        if (
            config
            and "volumeMounts" in inside
            and any("broker.conf" in one["mountPath"] for one in inside["volumeMounts"])
        ):
            ground.path("/etc/rocketmq/broker.conf").write_text(ground.text(config))
        return cls(spec, container)

    @property
    def inside(self) -> dict[str, Any]:
        return self.spec["containers"][0]  # type: ignore[no-any-return]

    def probe(self, kind: str) -> int:
        """The status that a probe sees."""
        return self.container.page(self.inside[kind]["httpGet"]["path"])[0]

    def delete(self) -> None:
        """Stop a pod like Kubernetes: preStop, SIGTERM, and SIGKILL after the grace period."""
        began = time.monotonic()
        self.container.run(self.inside["lifecycle"]["preStop"]["exec"]["command"])
        left = self.spec["terminationGracePeriodSeconds"] - (time.monotonic() - began)
        assert self.container.stop(left) in (0, -15), self.container.log.read_text()


@attrs.define
class Rehearsal:
    """Two broker groups with a slave each behind one name server."""

    folder: Path
    pods: dict[str, Pod] = attrs.field(factory=dict)
    name_server: str = ""

    def start(self) -> None:
        values = {"namesrv": {"replicas": 1}, "broker": {"drainSeconds": 1}, "console": {"enabled": False}}
        manifests = rendered(values)
        self.name_server = f"127.0.0.1:{new_ports({'9876'}, {})['9876']}"
        addresses = {"mq-namesrv-0.mq-namesrv:9876": self.name_server}
        (config,) = [one["data"]["broker.conf"] for one in manifests if one["kind"] == "ConfigMap"]
        sets = [one for one in manifests if one["kind"] == "StatefulSet"]
        for one in sorted(sets, key=lambda one: "namesrv" not in one["metadata"]["name"]):
            for ordinal in range(one["spec"]["replicas"]):
                pod = Pod.of(one, ordinal, self.folder, addresses, config)
                self.pods[pod.container.name] = pod
                pod.container.start()
        for pod in self.pods.values():
            self.wait_ready(pod)

    def wait_ready(self, pod: Pod) -> None:
        wait_until(lambda: pod.probe("readinessProbe") == 200, lambda: pod.container.log.read_text())

    def permissions(self) -> dict[str, int]:
        """By broker, as the name server has them."""
        (name_server,) = [pod.container for name, pod in self.pods.items() if "namesrv" in name]
        told = name_server.run(["mqadmin", "topicRoute", "-t", TOPIC, "-n", self.name_server])
        return dict(re.findall(r'"brokerName":\s*"([^"]+)",\s*"perm":\s*(\d+)', told))  # type: ignore[arg-type]

    def leave(self) -> None:
        for pod in reversed(self.pods.values()):
            if pod.container.process is not None:
                pod.container.stop()


@pytest.fixture(scope="module")
def rehearsal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rehearsal]:
    found = Rehearsal(tmp_path_factory.mktemp("pods"))
    try:
        found.start()
        yield found
    finally:
        found.leave()


@attrs.define
class Load:
    """Sends until it is stopped. `failed` has the reasons of failed sends."""

    name_server: str
    sent: int = 0
    failed: list[str] = attrs.field(factory=list)
    _stop: threading.Event = attrs.field(factory=threading.Event)
    _thread: threading.Thread = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        with Producer(self.name_server, group="rehearsal") as producer:
            while not self._stop.is_set():
                try:
                    producer.send(Message(TOPIC, b"%d" % self.sent), timeout=10)
                    self.sent += 1
                except ClientError as error:
                    self.failed.append(str(error))

    def passes(self, more: int = 20) -> None:
        goal = self.sent + more
        wait_until(lambda: self.sent >= goal or self.failed, lambda: f"{self.sent} sent")

    def end(self) -> None:
        self._stop.set()
        self._thread.join()


def test_pods_live_as_the_page_says(rehearsal: Rehearsal) -> None:
    pods = rehearsal.pods
    namesrv = pods["mq-namesrv-0"].container
    namesrv.run(["mqadmin", "updateTopic", "-t", TOPIC, "-c", "DefaultCluster", "-n", rehearsal.name_server])
    wait_until(lambda: len(rehearsal.permissions()) == 2, "the topic has its route")
    load = Load(rehearsal.name_server)
    try:
        load.passes()
        master, slave = pods["mq-broker-0-0"], pods["mq-broker-0-1"]
        # an update: the slave, then the master
        for pod in (slave, master):
            pod.delete()
            assert pod.probe("readinessProbe") == 0
            assert not pod.container.ground.path("/var/lib/rocketmq/store/abort").exists()
            load.passes()
            pod.container.start()
            rehearsal.wait_ready(pod)
        wait_until(lambda: set(rehearsal.permissions().values()) == {"6"}, lambda: str(rehearsal.permissions()))
        # a crash: ready only after recovery
        crashed = pods["mq-broker-1-0"]
        assert crashed.container.process is not None
        crashed.container.process.kill()
        assert crashed.container.ground.path("/var/lib/rocketmq/store/abort").exists()
        load.passes()
        crashed.container.start()
        rehearsal.wait_ready(crashed)
        log = crashed.container.process.output()
        assert log.index("recover") < log.index("registers as")
        rehearsal.wait_ready(pods["mq-broker-1-1"])
        load.passes()
    finally:
        load.end()
    assert load.failed == []


def test_a_master_that_drains_takes_no_more_messages_and_one_without_a_name_server_is_not_ready(
    rehearsal: Rehearsal,
) -> None:
    master = rehearsal.pods["mq-broker-1-0"]
    namesrv = rehearsal.pods["mq-namesrv-0"].container
    namesrv.run(["mqadmin", "updateTopic", "-t", TOPIC, "-c", "DefaultCluster", "-n", rehearsal.name_server])
    wait_until(lambda: len(rehearsal.permissions()) == 2, "the topic has its route")
    hook = master.inside["lifecycle"]["preStop"]["exec"]["command"]
    master.container.run(hook)
    assert rehearsal.permissions() == {"broker-0": "6", "broker-1": "4"}
    assert master.probe("livenessProbe") == 200
    slave = rehearsal.pods["mq-broker-0-1"]
    slave.container.run(hook)
    assert rehearsal.permissions()["broker-0"] == "6"
    namesrv.stop()
    wait_until(lambda: master.probe("readinessProbe") == 503, "no name server knows the master")
    assert master.probe("livenessProbe") == 200
