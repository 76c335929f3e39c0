"""Shows and changes settings of brokers and name servers: `mqadmin getBrokerConfig`, `updateBrokerConfig`, `getNamesrvConfig`,
`updateNamesrvConfig`, `updateKvConfig`, `deleteKvConfig`, `wipeWritePerm`, `addWritePerm`.
"""

from __future__ import annotations

from collections.abc import Iterator

from twisted_mq.cli.admin.calls import AdminContext, all_addresses, broker_names, chosen_masters, cluster_of_line
from twisted_mq.cli.admin.command_line import CommandLine
from twisted_mq.config.properties import property_table
from twisted_mq.protocol.bodies import ClusterInfo
from twisted_mq.protocol.codes import RequestCode
from twisted_mq.protocol.errors import ProtocolError
from twisted_mq.protocol.headers import (
    AddWritePermOfBrokerRequestHeader,
    AddWritePermOfBrokerResponseHeader,
    DeleteKVConfigRequestHeader,
    PutKVConfigRequestHeader,
    WipeWritePermOfBrokerRequestHeader,
    WipeWritePermOfBrokerResponseHeader,
)
from twisted_mq.protocol.names.routes import MASTER_ID
from twisted_mq.protocol.wire.header_codec import decode_header
from twisted_mq.remoting.errors import RemotingError

BAR = "=" * 12


async def _settings(admin: AdminContext, address: str, code: RequestCode) -> dict[str, str]:
    """Return a server's settings by key, sorted; Apache's order is that of a hash table."""
    return dict(sorted(property_table((await admin.invoke(address, code)).body).items()))


def _changed(line: CommandLine) -> bytes:
    """Return the body that sets the key of -k to the value of -v (MixAll.properties2String)."""
    return f"{line.value('k')}={line.value('v')}\n".encode()


def _lines(settings: dict[str, str]) -> list[str]:
    return [f"{key:<50}=  {value}" for key, value in settings.items()]


# brokers


async def get_broker_config(admin: AdminContext, line: CommandLine) -> None:
    if "b" in line:
        titles = [(f"{BAR}{line.value('b')}{BAR}", line.value("b"))]
    else:
        titles = list(titled_brokers(await admin.cluster_info(), cluster_of_line(line)))
    for title, address in titles:
        settings = await _settings(admin, address, RequestCode.GET_BROKER_CONFIG)
        admin.say("\n".join([title, *_lines(settings), ""]), broker=address, settings=settings)


def titled_brokers(cluster: ClusterInfo, cluster_name: str) -> Iterator[tuple[str, str]]:
    """Yield each broker's title and address in a cluster: masters, each before its slaves."""
    for name in broker_names(cluster, cluster_name):
        addresses = dict(sorted(cluster.broker_addr_table[name].broker_addrs.items()))
        master = addresses.pop(MASTER_ID, None)
        if master is not None:
            yield f"{BAR}Master: {master}{BAR}", master
        for slave in addresses.values():
            yield f"{BAR}My Master: {master or 'NO_MASTER'}=====Slave: {slave}{BAR}", slave


async def update_broker_config(admin: AdminContext, line: CommandLine) -> None:
    if "a" in line and "b" not in line:
        addresses = all_addresses(await admin.cluster_info(), cluster_of_line(line))
    else:
        addresses = await chosen_masters(admin, line)
    for address in addresses:
        await admin.invoke(address, RequestCode.UPDATE_BROKER_CONFIG, body=_changed(line))
        admin.say(
            f"update broker config success, {address}", broker=address, changed={line.value("k"): line.value("v")}
        )


async def _change_write_perm(admin: AdminContext, line: CommandLine, word: str) -> None:
    """Change the permission at each name server; name one that fails, and ask the others all the same."""
    broker_name = line.value("b")
    for address in admin.name_servers:
        where = f"{word} write perm of broker[{broker_name}] in name server[{address}]"
        try:
            count = await _WAYS[word](admin, address, broker_name)
        except (ProtocolError, RemotingError) as error:
            admin.say(f"{where} Failed", nameServer=address, failed=str(error))
            admin.warn(str(error))
        else:
            admin.say(f"{where} OK, {count}", nameServer=address, topics=count)


async def _wipe(admin: AdminContext, address: str, broker_name: str) -> int:
    header = WipeWritePermOfBrokerRequestHeader(broker_name=broker_name)
    answer = await admin.invoke(address, RequestCode.WIPE_WRITE_PERM_OF_BROKER, header)
    return decode_header(WipeWritePermOfBrokerResponseHeader, answer).wipe_topic_count


async def _add(admin: AdminContext, address: str, broker_name: str) -> int:
    header = AddWritePermOfBrokerRequestHeader(broker_name=broker_name)
    answer = await admin.invoke(address, RequestCode.ADD_WRITE_PERM_OF_BROKER, header)
    return decode_header(AddWritePermOfBrokerResponseHeader, answer).add_topic_count


_WAYS = {"wipe": _wipe, "add": _add}


async def wipe_write_perm(admin: AdminContext, line: CommandLine) -> None:
    await _change_write_perm(admin, line, "wipe")


async def add_write_perm(admin: AdminContext, line: CommandLine) -> None:
    await _change_write_perm(admin, line, "add")


# name servers


async def get_namesrv_config(admin: AdminContext, line: CommandLine) -> None:
    for address in admin.name_servers:
        settings = await _settings(admin, address, RequestCode.GET_NAMESRV_CONFIG)
        admin.say("\n".join([f"{BAR}{address}{BAR}", *_lines(settings)]), nameServer=address, settings=settings)


async def update_namesrv_config(admin: AdminContext, line: CommandLine) -> None:
    for address in admin.name_servers:
        await admin.invoke(address, RequestCode.UPDATE_NAMESRV_CONFIG, body=_changed(line))
    names = f"[{', '.join(admin.name_servers)}]" if "n" in line else ""
    key, value = line.value("k"), line.value("v")
    admin.say(
        f"update name server config success!{names}\n{key} : {value}",
        nameServers=admin.name_servers,
        changed={key: value},
    )


async def update_kv_config(admin: AdminContext, line: CommandLine) -> None:
    header = PutKVConfigRequestHeader(namespace=line.value("s"), key=line.value("k"), value=line.value("v"))
    await admin.tell_name_servers(RequestCode.PUT_KV_CONFIG, header)
    admin.say("create or update kv config to namespace success.", changed={header.key: header.value})


async def delete_kv_config(admin: AdminContext, line: CommandLine) -> None:
    header = DeleteKVConfigRequestHeader(namespace=line.value("s"), key=line.value("k"))
    await admin.tell_name_servers(RequestCode.DELETE_KV_CONFIG, header)
    admin.say("delete kv config from namespace success.", deleted=header.key)
