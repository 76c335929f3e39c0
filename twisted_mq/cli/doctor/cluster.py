"""Checks a cluster as its clients see it: name servers, brokers at the addresses they announce, routes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

from twisted_mq.admin.calls import AdminCalls, brokers
from twisted_mq.admin.errors import AdminError
from twisted_mq.cli.doctor.checks import CheckOutcome, Result, graded
from twisted_mq.cli.doctor.figures import clock, disk, replication, safety
from twisted_mq.config.properties import property_table
from twisted_mq.protocol.bodies import ClusterInfo, TopicRouteData, decode_body
from twisted_mq.protocol.codes import RequestCode, ResponseCode
from twisted_mq.protocol.errors import BrokerError, ProtocolError
from twisted_mq.protocol.flags import is_writeable
from twisted_mq.protocol.names.routes import MASTER_ID
from twisted_mq.protocol.names.system_topics import is_system_topic
from twisted_mq.remoting.client import split_address
from twisted_mq.remoting.errors import RemotingError

FAILURES = (AdminError, ProtocolError, RemotingError)
MOST_TOPICS = 1000
"""The most routes that are checked."""
MOST_NAMED = 20
"""The most topics without a place that are named."""
LOOPBACKS = ("127.", "localhost", "::1")

START_ONE = "start it, or remove it from --namesrv; `mq up` starts one on this machine"
ADVERTISED = (
    "clients connect to the address that it registers: set brokerIP1 to one that they can reach, or open the firewall"
)


async def check_cluster(admin: AdminCalls) -> AsyncIterator[CheckOutcome]:
    """Yield checks as they are made; a server that cannot be asked is a problem, and its other checks are left out."""
    found: dict[str, ClusterInfo] = {}
    for address in admin.name_servers:
        yield await _name_server(admin, address, found)
        if address in found:
            for check in safety(
                f"name server {address}", await _settings(admin, address, RequestCode.GET_NAMESRV_CONFIG)
            ):
                yield check
    if not found:
        return
    for check in _same(found):
        yield check
    server, cluster = next(iter(found.items()))
    versions: dict[str, str] = {}
    for _, name, broker_id, address in brokers(cluster, sorted(cluster.cluster_addr_table)):
        slaves = len(cluster.broker_addr_table[name].broker_addrs) - 1
        async for check in _broker(admin, f"broker {name}:{broker_id}", address, server, slaves, broker_id, versions):
            yield check
    if not versions:
        yield CheckOutcome(
            "brokers", f"name server {server}", Result.PROBLEM, "no broker can be asked", "start one with `mq up`"
        )
        return
    yield _version(versions)
    async for check in _routes(admin, cluster):
        yield check


async def _name_server(admin: AdminCalls, address: str, found: dict[str, ClusterInfo]) -> CheckOutcome:
    where, began_ms = f"name server {address}", admin.now_ms()
    try:
        answer = await admin.invoke(address, RequestCode.GET_BROKER_CLUSTER_INFO)
        found[address] = decode_body(ClusterInfo, answer.body)
    except (ProtocolError, RemotingError) as error:
        return CheckOutcome("connection", where, Result.PROBLEM, str(error), _remedy(error, START_ONE))
    count = sum(len(broker.broker_addrs) for broker in found[address].broker_addr_table.values())
    return CheckOutcome(
        "connection", where, Result.OK, f"answers in {admin.now_ms() - began_ms} ms, knows {count} brokers"
    )


def _same(found: dict[str, ClusterInfo]) -> Iterator[CheckOutcome]:
    """Check that all name servers know the same brokers."""
    known = {
        server: {(name, *one) for name, data in cluster.broker_addr_table.items() for one in data.broker_addrs.items()}
        for server, cluster in found.items()
    }
    everybody = set.union(*known.values())
    for server, here in known.items():
        missing = sorted(f"{name}:{broker_id}" for name, broker_id, _ in everybody - here)
        if missing:
            yield CheckOutcome(
                "brokers",
                f"name server {server}",
                Result.WARNING,
                f"does not know {', '.join(missing)}",
                "list all name servers in namesrvAddr of every broker",
            )


async def _broker(
    admin: AdminCalls, where: str, address: str, server: str, slaves: int, broker_id: int, versions: dict[str, str]
) -> AsyncIterator[CheckOutcome]:
    """Check one broker at the address that it announces."""
    where, began_ms = f"{where} {address}", admin.now_ms()
    try:
        figures = await admin.broker_runtime(address)
    except (ProtocolError, RemotingError, ValueError) as error:
        yield CheckOutcome("connection", where, Result.PROBLEM, str(error), _remedy(error, ADVERTISED))
        return
    yield CheckOutcome("connection", where, Result.OK, f"answers in {admin.now_ms() - began_ms} ms")
    yield _advertised(where, address, server)
    settings = await _settings(admin, address, RequestCode.GET_BROKER_CONFIG)
    versions[where] = figures.get("brokerVersionDesc", "unknown")
    yield clock(where, figures, admin.now_ms())
    yield disk(where, figures, settings)
    for check in safety(where, settings):
        yield check
    if broker_id == MASTER_ID:
        for check in replication(where, settings, slaves):
            yield check


def _advertised(where: str, address: str, server: str) -> CheckOutcome:
    """Check the announced address: other machines reach the name server by another address, and cannot use a local one."""
    local = address.startswith(LOOPBACKS) and not split_address(server)[0].startswith(LOOPBACKS)
    return graded("advertised address", where, address, (local, Result.PROBLEM, ADVERTISED))


async def _settings(admin: AdminCalls, address: str, code: RequestCode) -> dict[str, str]:
    """Return a server's settings; empty if it does not show them."""
    try:
        return property_table((await admin.invoke(address, code)).body)
    except (ProtocolError, RemotingError, ValueError):
        return {}


def _version(versions: dict[str, str]) -> CheckOutcome:
    different = sorted(set(versions.values()))
    return graded(
        "version",
        "brokers",
        ", ".join(different),
        (len(different) > 1, Result.WARNING, "upgrade all brokers to one version, slaves first"),
    )


async def _routes(admin: AdminCalls, cluster: ClusterInfo) -> AsyncIterator[CheckOutcome]:
    """Check that each topic has a broker that takes its messages."""
    try:
        topics = sorted(topic for topic in await admin.topic_list() if not is_system_topic(topic))
    except FAILURES as error:
        yield CheckOutcome("routes", "topics", Result.PROBLEM, str(error), _remedy(error, START_ONE))
        return
    lost: list[tuple[str, str]] = []
    for topic in topics[:MOST_TOPICS]:
        try:
            fault = _fault(await admin.topic_route(topic))
        except FAILURES as error:
            fault = str(error)
        if fault:
            lost.append((topic, fault))
    for topic, fault in lost[:MOST_NAMED]:
        remedy = "start its broker; `mq admin topicRoute` shows its queues, `mq admin updateTopicPerm` changes its permission"
        yield CheckOutcome("route", f"topic {topic}", Result.WARNING, fault, remedy)
    looked = min(len(topics), MOST_TOPICS)
    left = f", {len(topics) - looked} were not checked" if len(topics) > looked else ""
    result = Result.OK if not lost else Result.WARNING
    yield CheckOutcome("routes", "topics", result, f"{looked - len(lost)} of {looked} take messages{left}")


def _fault(route: TopicRouteData) -> str:
    masters = {one.broker_name for one in route.broker_datas if MASTER_ID in one.broker_addrs}
    if not masters:
        return "no broker of it has a master"
    writable = any(is_writeable(one.perm) and one.broker_name in masters for one in route.queue_datas)
    return "" if writable else "no master has a writable queue"


def _remedy(error: Exception, otherwise: str) -> str:
    if isinstance(error, BrokerError) and error.response_code == ResponseCode.NO_PERMISSION:
        return "use an account with that right: --access-key and --secret-key, or a context"
    return otherwise
