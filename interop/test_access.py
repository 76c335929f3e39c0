"""Access control 2.0: Apache's client and mqadmin, and this project's client, meet the same refusals at both brokers."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from interop.peers.clients import Clients, JavaPeer, OurPeer, Producer, unique
from interop.peers.line_peer import PeerError
from interop.peers.process import wait_until
from interop.peers.requirements import require_java
from interop.peers.servers import CLUSTER_NAME, COMMANDS, Cluster, running
from interop.recorded import Recording
from twisted_mq.protocol.codes import ResponseCode

pytestmark = pytest.mark.peer

AUTH = "org.apache.rocketmq.auth."
ROOT = {"access_key": "root", "secret_key": "planted-of-root"}
ADA = {"access_key": "ada", "secret_key": "planted-of-ada"}
SETTINGS = {
    "authenticationEnabled": "true",
    "authenticationProvider": f"{AUTH}authentication.provider.DefaultAuthenticationProvider",
    "authenticationMetadataProvider": f"{AUTH}authentication.provider.LocalAuthenticationMetadataProvider",
    "authorizationEnabled": "true",
    "authorizationProvider": f"{AUTH}authorization.provider.DefaultAuthorizationProvider",
    "authorizationMetadataProvider": f"{AUTH}authorization.provider.LocalAuthorizationMetadataProvider",
    "initAuthenticationUser": json.dumps({"username": "root", "password": ROOT["secret_key"]}),
    "innerClientAuthenticationCredentials": json.dumps({"accessKey": "inner", "secretKey": "planted-of-inner"}),
}
PASSWORD = re.compile(r"(null|planted-of-\w+) +(?=Super|Normal)")
RECORDED = Recording.named("access")
"""The output of each command line against Apache's broker."""
THROWN = re.compile(r"^(org|java)\.\S+Exception")
"""Pattern of a failure in the output of Apache's tool."""


class AskingCluster(Cluster):
    """Servers whose broker asks everybody."""

    java: JavaPeer

    def wait_registered(self) -> None:
        """Apache's broker may have missed its first registration: whatever is set makes it register now."""
        if self.kind == "apache" and not self._registered():
            words = ("updateBrokerConfig", "-b", self.broker, "-k", "brokerPermission", "-v", "6")
            self.java.mqadmin(*words, **ROOT)
        wait_until(self._registered, f"{self.kind} broker registers")


@pytest.fixture(scope="module", params=list(COMMANDS))
def asking(request: pytest.FixtureRequest, java: JavaPeer, tmp_path_factory: Any) -> Iterator[Cluster]:
    require_java()
    servers = AskingCluster(request.param, tmp_path_factory.mktemp(request.param), settings=SETTINGS)
    servers.java = java
    with running(servers):
        yield servers


@pytest.fixture(params=["java", "ours"])
def clients(
    request: pytest.FixtureRequest, asking: Cluster, java: JavaPeer, our_client_process: OurPeer
) -> Iterator[Clients]:
    made = Clients(java if request.param == "java" else our_client_process, asking.name_server)
    yield made
    made.stop()


ADMINISTRATION = f"""
createUser -b BROKER -u ada -p {ADA["secret_key"]}
createUser -b BROKER -u ada -p x
createUser -b BROKER -u bob -p planted-of-bob -t Super
getUser -b BROKER -u ada
listUser -b BROKER
listUser -b BROKER -f b
updateUser -b BROKER -u bob -t Normal
updateUser -b BROKER -u bob -s disable
updateUser -b BROKER -u eve -p x
getUser -b BROKER -u bob
createAcl -b BROKER -s User:ada -r Topic:A,Topic:B* -a Pub,Sub -i 127.0.0.1,10.0.0.0/8 -d Allow
createAcl -b BROKER -s User:ada -r Group:* -a Sub -d Deny
createAcl -b BROKER -s User:eve -r Group:* -a Sub -d Deny
createAcl -b BROKER -s User:ada -r Tpoic:A -a Sub -d Deny
createAcl -b BROKER -s User:ada -r Topic:A -a Fly -d Deny
createAcl -b BROKER -s User:ada -r Topic:A -a Any -d Deny
createAcl -b BROKER -s User:ada -r Topic:A -a Sub -d Perhaps
createAcl -b BROKER -s User:ada -r Topic:A -a Sub -i 10.0.0.0/40 -d Allow
updateAcl -b BROKER -s User:ada -r Group:* -a Sub -d Allow
getAcl -b BROKER -s User:ada
getAcl -b BROKER -s User:eve
copyUser -f BROKER -t BROKER -u ada
copyAcl -f BROKER -t BROKER -s User:ada
listAcl -b BROKER
listAcl -b BROKER -s ada -r Group
deleteAcl -b BROKER -s User:ada -r Topic:A
deleteAcl -b BROKER -s User:bob
getAcl -b BROKER -s User:ada
deleteAcl -b BROKER -s User:ada
deleteUser -b BROKER -u bob
deleteUser -b BROKER -u eve
listUser -b BROKER
""".strip().splitlines()


def question(number: int) -> str:
    """A command line under its number: some come twice, with another answer."""
    return f"{number:02} {ADMINISTRATION[number]}"


def lines_of(printed: str, cluster: Cluster) -> list[str]:
    """Return the output without addresses, stacks and passwords: Apache's broker shows them, ours does not."""
    text = PASSWORD.sub("PASSWORD ", printed.replace(cluster.broker, "BROKER"))
    lines = [" ".join(line.split()) for line in text.splitlines()]
    return [line for line in lines if line and not line.startswith(("at ", "Caused by", "..."))]


def test_users_and_policies_are_administered_with_apaches_mqadmin(asking: Cluster, java: JavaPeer) -> None:
    for number, line in enumerate(ADMINISTRATION):
        printed = java.mqadmin(*line.replace("BROKER", asking.broker).split(), **ROOT)
        assert asking.kind == "apache" or "planted" not in printed, line
        lines = lines_of(printed, asking)
        assert lines == RECORDED.apaches(question(number), lines, asking.kind), line


def test_the_recording_has_each_line_of_the_administration_and_no_other() -> None:
    assert RECORDED.questions() == set(map(question, range(len(ADMINISTRATION))))


def keep_credentials(home: Path) -> None:
    """Write down who the administrator is, where our mqadmin looks."""
    (home / "conf").mkdir()
    text = f"accessKey: {ROOT['access_key']}\nsecretKey: {ROOT['secret_key']}\n"
    (home / "conf" / "tools.yml").write_text(text)


def test_our_mqadmin_administers_users_and_policies_as_apaches(
    asking: Cluster, java: JavaPeer, our_client_process: OurPeer, tmp_path: Path
) -> None:
    """Our tool signs with conf/tools.yml below its home; it fails where Apache's throws. The user ada exists when both start."""
    keep_credentials(tmp_path)
    lines = [line.replace("BROKER", asking.broker).split() for line in ADMINISTRATION]
    java.mqadmin(*lines[0], **ROOT)
    apaches = [lines_of(java.mqadmin(*line, **ROOT), asking) for line in lines]
    for line, wanted in zip(lines, apaches, strict=True):
        printed = our_client_process.mqadmin(line[0], "-n", asking.name_server, *line[1:], directory=tmp_path)
        if any(map(THROWN.match, wanted)):
            assert printed["err"], line
        else:
            assert (lines_of(printed["out"], asking), printed["err"]) == (wanted, ""), line


@pytest.fixture(scope="module")
def topic(asking: Cluster, java: JavaPeer) -> str:
    """Create a topic that the user ada may send to, and consume with the group of the same name."""
    name = unique("Topic")

    def admin(*words: str) -> str:
        return java.mqadmin(words[0], "-n", asking.name_server, *words[1:], **ROOT)

    assert "success" in admin("updateTopic", "-c", CLUSTER_NAME, "-t", name, "-r", "1", "-w", "1")
    admin("createUser", "-b", asking.broker, "-u", "ada", "-p", ADA["secret_key"])
    rights = ("createAcl", "-b", asking.broker, "-s", "User:ada", "-d", "Allow")
    assert "success" in admin(*rights, "-r", f"Topic:{name}", "-a", "Pub,Sub,Get")
    assert "success" in admin(*rights, "-r", f"Group:{name}", "-a", "Sub")
    asking.wait_route(name)
    return name


def test_our_mqadmin_signs_what_it_sends(
    asking: Cluster, topic: str, our_client_process: OurPeer, tmp_path: Path
) -> None:
    keep_credentials(tmp_path)
    words = ("sendMessage", "-n", asking.name_server, "-t", topic, "-p", "signed")
    printed = our_client_process.mqadmin(*words, directory=tmp_path)
    assert ("SEND_OK" in printed["out"], printed["err"]) == (True, "")


def test_a_user_sends_and_consumes_what_is_allowed(clients: Clients, topic: str) -> None:
    consumer = clients.push_consumer(topic, topic, **ADA)
    producer = clients.producer(**ADA)
    text = unique("allowed")
    assert producer.send(topic, text)["status"] == "SEND_OK"
    consumer.wait_bodies({text})


def check_refused(producer: Producer, topic: str, remark: str) -> None:
    """Apache's client tells the code alone."""
    with pytest.raises(PeerError) as caught:
        producer.send(topic, "refused")
    if isinstance(producer.peer, JavaPeer):
        assert caught.value.code == 16
    else:
        assert remark in caught.value.message


@pytest.mark.parametrize(
    ("credentials", "remark"),
    [
        ({}, "username cannot be null."),
        ({"access_key": "ada", "secret_key": "wrong"}, "check signature failed."),
        ({"access_key": "nobody", "secret_key": "x"}, "User:nobody is not found."),
    ],
)
def test_who_does_not_prove_who_he_is_is_refused(
    clients: Clients, topic: str, credentials: dict[str, str], remark: str
) -> None:
    producer = clients.producer(**credentials)
    check_refused(producer, topic, remark)


OLD = {"access_key": "ada-of-old", "secret_key": "planted-of-old"}
PLAIN_ACCOUNTS = """
accounts:
  - accessKey: ada-of-old
    secretKey: planted-of-old
    defaultTopicPerm: DENY
    defaultGroupPerm: SUB
    topicPerms:
      - Allowed=PUB|SUB
"""


def test_apaches_client_is_known_by_accounts_of_plain_acl_yml(java: JavaPeer, tmp_path: Path) -> None:
    """The accounts are those of access control 1.0, which Apache's broker no longer has."""
    (tmp_path / "old" / "conf").mkdir(parents=True)
    (tmp_path / "old" / "conf" / "plain_acl.yml").write_text(PLAIN_ACCOUNTS)
    settings = {"aclEnable": "true", "rocketmqHome": tmp_path / "old"}
    servers = Cluster("ours", tmp_path / "servers", settings=settings)
    clients = Clients(java, servers.name_server)
    try:
        servers.start()
        producer = clients.producer(**OLD)
        assert producer.send("Allowed", "one")["status"] == "SEND_OK"
        clients.push_consumer("readers", "Allowed", **OLD).wait_bodies({"one"})
        wrong = clients.producer(**{**OLD, "secret_key": "wrong"})
        for refused, topic in ((producer, "Other"), (wrong, "Allowed"), (clients.producer(), "Allowed")):
            with pytest.raises(PeerError) as caught:
                refused.send(topic, "refused")
            assert caught.value.code == ResponseCode.SYSTEM_ERROR
    finally:
        clients.stop()
        servers.stop()


def test_what_is_not_allowed_is_refused(clients: Clients, asking: Cluster, topic: str, java: JavaPeer) -> None:
    other = unique("Other")
    words = ("updateTopic", "-n", asking.name_server, "-c", CLUSTER_NAME, "-t", other)
    assert "success" in java.mqadmin(*words, **ROOT)
    asking.wait_route(other)
    producer = clients.producer(**ADA)
    remark = f"User:ada has no permission to access Topic:{other} from 127.0.0.1, no matched policies."
    check_refused(producer, other, remark)
