"""Implements `mqadmin checkRocksdbCqWriteProgress`, `exportPopRecord`, `rocksDBConfigToJson`: requests to Apache's
brokers with RocksDB.

Brokers without RocksDB answer that there is nothing to do.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

from twisted_mq.admin.figures import settings_of
from twisted_mq.cli.admin.calls import AdminContext, broker_names
from twisted_mq.cli.admin.command_line import CommandLine, UsageError
from twisted_mq.protocol.bodies import CheckRocksdbCqWriteResult
from twisted_mq.protocol.bodies.codec import decode_body
from twisted_mq.protocol.codes import RequestCode
from twisted_mq.protocol.errors import RocketMQError
from twisted_mq.protocol.headers import CheckRocksdbCqWriteProgressRequestHeader, ExportRocksDBConfigToJsonRequestHeader
from twisted_mq.protocol.names.routes import MASTER_ID

CHECK_ERROR = 3
"""Apache: CheckStatus.CHECK_ERROR."""
MONTH_MS = 30 * 24 * 3600 * 1000
TYPES = ("topics", "subscriptionGroups", "consumerOffsets")


async def check_rocksdb_cq_write_progress(admin: AdminContext, line: CommandLine) -> None:
    since_ms = line.number("cf", admin.now_ms() - MONTH_MS)
    asked = CheckRocksdbCqWriteProgressRequestHeader(topic=line.value("t"), check_store_time=since_ms)
    async for name, address in _masters(admin, line.value("c")):
        answer = await admin.invoke(address, RequestCode.CHECK_ROCKSDB_CQ_WRITE_PROGRESS, asked)
        found = decode_body(CheckRocksdbCqWriteResult, answer.body)
        text = f"{name} check doing, please wait and get the result from log... "
        if found.check_status == CHECK_ERROR:
            text = f"{name} check error, please check log... errInfo: {found.check_result}"
        admin.say(text, broker=name, status=found.check_status, result=found.check_result)


async def _masters(admin: AdminContext, cluster_name: str) -> AsyncIterator[tuple[str, str]]:
    """Yield names and addresses of masters. Raises ClusterUnknown."""
    cluster = await admin.cluster_info()
    for name in broker_names(cluster, cluster_name):
        yield name, ((cluster.broker_addr_table or {})[name].broker_addrs or {})[MASTER_ID]


async def export_pop_record(admin: AdminContext, line: CommandLine) -> None:
    """Export pop records; as in 5.3.3, -d false changes nothing."""
    preview = line.value("d").lower() == "false"
    for name, address in await _chosen(admin, line):
        failure = "" if preview else await _exported(admin, address)
        told = f"brokerName={name}, brokerAddr={address}, dryRun={str(preview).lower()}"
        text = f"Export broker records error, {told}\n{failure}" if failure else f"Export broker records, {told}"
        admin.say(text, broker=name, address=address, dryRun=preview, error=failure or None)


async def _chosen(admin: AdminContext, line: CommandLine) -> list[tuple[str, str]]:
    """Return the broker of -b, or all of the cluster of -c, with their names."""
    if "b" in line:
        return [((await settings_of(admin, line.value("b"))).get("brokerName", ""), line.value("b"))]
    cluster, names = await admin.cluster_info(), line.value("c")
    table = cluster.broker_addr_table or {}
    found = broker_names(cluster, names) if names else []
    return [(name, address) for name in found for address in (table[name].broker_addrs or {}).values()]


async def _exported(admin: AdminContext, address: str) -> str:
    """Return what went wrong; empty on success."""
    try:
        await admin.invoke(address, RequestCode.POP_ROLLBACK)
    except RocketMQError as error:
        return str(error)
    return ""


async def rocks_dbconfig_to_json(admin: AdminContext, line: CommandLine) -> None:
    if "p" in line:
        raise UsageError("RocksDB files are not read here; use Apache's mqadmin, or ask a broker with -b or -c")
    types = [name for name in line.value("t").split(";") if name] or list(TYPES)
    if not set(types) <= set(TYPES):
        raise UsageError(f"Invalid configType: {line.value('t')} please input {'/'.join(TYPES)}")
    if "c" not in line and "b" not in line:
        raise UsageError("rpc mode Invalid args, please input cluster")
    asked = ExportRocksDBConfigToJsonRequestHeader(config_type="".join(f"{name};" for name in types))
    addresses = [address async for _, address in _masters(admin, line.value("c"))] if "c" in line else [line.value("b")]
    whom = "all brokers in cluster" if "c" in line else "broker"
    admin.say(f"Use [rpc mode] call {whom} to export to json file ")
    for address in addresses:
        await admin.invoke(address, RequestCode.EXPORT_ROCKSDB_CONFIG_TO_JSON, asked)
        admin.say(None, broker=address, configTypes=types)
    admin.say("broker export done.")
