"""`mqadmin getColdDataFlowCtrInfo`, `updateColdDataFlowCtrGroupConfig`, `removeColdDataFlowCtrGroupConfig`,
`setCommitLogReadAheadMode`: limits of reads of messages that are not in memory any more.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from twisted_mq.cli.admin.calls import AdminContext, chosen_masters, cluster_of_line
from twisted_mq.cli.admin.command_line import CommandLine, UsageError
from twisted_mq.cli.admin.java_format import date_text, hash_order, pretty_json, text_or_null
from twisted_mq.cli.admin.server_settings import BAR, titled_brokers
from twisted_mq.protocol.codes import RequestCode
from twisted_mq.protocol.text.fastjson import loads

TIMES = {"lastColdReadTimeMills": "lastColdReadTimeFormat", "createTimeMills": "createTimeFormat"}
"""Members of a group's statistics that are shown as a date, under another name."""
READ_AHEAD_MODE = "READ_AHEAD_MODE"
"""The field of SET_COMMITLOG_READ_MODE (FIleReadaheadMode)."""


async def _titled(admin: AdminContext, line: CommandLine) -> list[tuple[str, str]]:
    if "b" in line:
        return [(f"{BAR}{line.value('b')}{BAR}", line.value("b"))]
    return list(titled_brokers(await admin.cluster_info(), cluster_of_line(line)))


async def get_cold_data_flow_ctr_info(admin: AdminContext, line: CommandLine) -> None:
    for title, address in await _titled(admin, line):
        body = (await admin.invoke(address, RequestCode.GET_COLD_DATA_FLOW_CTR_INFO)).body
        if not body:
            admin.say(f" {title}\nBroker[{address}] has no cold ctr table !", broker=address)
            continue
        found: Any = loads(body)
        table = {name: _with_dates(one) for name, one in (found.get("runtimeTable") or {}).items()}
        value = {**found, "runtimeTable": table}
        admin.say(f" {title}\n{pretty_json(_as_printed(value))}", broker=address, info=value)


def _as_printed(value: Any) -> Any:
    """Order members as Apache's tool does, which reads objects into HashMaps."""
    if not isinstance(value, dict):
        return value
    return {name: _as_printed(value[name]) for name in hash_order(value)}


def _with_dates(figures: Mapping[str, Any]) -> dict[str, Any]:
    """Return a group's statistics with readable times."""
    dates = {TIMES[name]: date_text(int(figures[name])) for name in TIMES if name in figures}
    return {**{name: value for name, value in figures.items() if name not in TIMES}, **dates}


async def update_cold_data_flow_ctr_group_config(admin: AdminContext, line: CommandLine) -> None:
    body = f"{line.value('g')}={line.value('v')}\n".encode()
    for address in await chosen_masters(admin, line):
        await admin.invoke(address, RequestCode.UPDATE_COLD_DATA_FLOW_CTR_CONFIG, body=body)
        admin.say(f"updateColdDataFlowCtrGroupConfig success, {address}", broker=address)


async def remove_cold_data_flow_ctr_group_config(admin: AdminContext, line: CommandLine) -> None:
    for address in await chosen_masters(admin, line):
        await admin.invoke(address, RequestCode.REMOVE_COLD_DATA_FLOW_CTR_CONFIG, body=line.value("g").encode())
        admin.say(f"remove broker cold read threshold success, {address}", broker=address)


async def set_commit_log_read_ahead_mode(admin: AdminContext, line: CommandLine) -> None:
    mode = line.value("m")
    if mode not in ("0", "1"):
        raise UsageError("set the read mode error; 0 is default, 1 random read")
    for title, address in await _titled(admin, line):
        answer = await admin.invoke(address, RequestCode.SET_COMMITLOG_READ_MODE, more_fields={READ_AHEAD_MODE: mode})
        remark = text_or_null(answer.remark or None)
        admin.say(f" {title}\ncommitLog set readAhead mode rstStr{remark}", broker=address, result=answer.remark)
