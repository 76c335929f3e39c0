"""`mqadmin clusterList`, `brokerStatus` (Apache: ClusterListSubCommand, BrokerStatusSubCommand): brokers and their statistics.

brokerStatus has rows for a master's slaves too. This project's brokers have them in their table; Apache's are asked for them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from twisted_mq.admin.calls import brokers
from twisted_mq.broker.ha.slave_rows import PREFIX, slave_rows
from twisted_mq.cli.admin.calls import AdminContext, all_addresses
from twisted_mq.cli.admin.command_line import CommandLine
from twisted_mq.cli.admin.java_format import fixed, hash_order, parse_number, text_or_null
from twisted_mq.protocol.bodies import HARuntimeInfo, decode_body
from twisted_mq.protocol.codes import RequestCode
from twisted_mq.protocol.errors import BrokerError, ProtocolError
from twisted_mq.remoting.errors import RemotingError

_BASE = "{:<22}  {:<22}  {:<4}  {:<22} {:<16}  {:>16}  {:>30}  {:<22}  "
BASE_HEAD = (_BASE + "{:<11}  {:<12}  {:<8}  {:<10}").format(
    "#Cluster Name",
    "#Broker Name",
    "#BID",
    "#Addr",
    "#Version",
    "#InTPS(LOAD)",
    "#OutTPS(LOAD)",
    "#Timer(Progress)",
    "#PCWait(ms)",
    "#Hour",
    "#SPACE",
    "#ACTIVATED",
)
BASE_ROW = _BASE + "{:>11}  {:<12}  {:<8}  {:>10}"

_MORE = "{:<16}  {:<32} {:>14} {:>14} {:>14} {:>14}"
MORE_HEAD = _MORE.format(
    "#Cluster Name", "#Broker Name", "#InTotalYest", "#OutTotalYest", "#InTotalToday", "#OutTotalToday"
)

MS_PER_HOUR = 3_600_000.0


async def cluster_list(admin: AdminContext, line: CommandLine) -> None:
    interval_seconds = line.number("i", 0)
    await _print_once(admin, line)
    while "i" in line:
        await admin.sleep(interval_seconds)
        await _print_once(admin, line)


async def _print_once(admin: AdminContext, line: CommandLine) -> None:
    cluster = await admin.cluster_info()
    names = [line.value("c")] if line.value("c") else hash_order(cluster.cluster_addr_table or {})
    more = "m" in line
    admin.say(MORE_HEAD if more else BASE_HEAD)
    for cluster_name, broker_name, broker_id, address in brokers(cluster, names):
        figures = await _figures(admin, address)
        if more:
            row = more_row(cluster_name, broker_name, figures or {})
        else:
            row = base_row(cluster_name, broker_name, broker_id, address, figures, admin.now_ms())
        admin.say(row, cluster=cluster_name, broker=broker_name, brokerId=broker_id, address=address, figures=figures)


async def _figures(admin: AdminContext, address: str) -> dict[str, str] | None:
    """Return the broker's statistics; None, with a line on standard error, if it cannot be asked."""
    try:
        return await admin.broker_runtime(address)
    except (ProtocolError, RemotingError) as error:
        admin.warn(f"no metrics from broker {address}: {error}")
        return None


def base_row(
    cluster_name: str, broker_name: str, broker_id: int, address: str, figures: Mapping[str, str] | None, now_ms: int
) -> str:
    """Return rates, load and age of one broker; without statistics the columns are empty or zero, as Apache prints them."""
    figure = _reader(figures)
    send_load = f"{figure('sendThreadPoolQueueSize')},{figure('sendThreadPoolQueueHeadWaitTimeMills')}ms"
    pull_load = f"{figure('pullThreadPoolQueueSize')},{figure('pullThreadPoolQueueHeadWaitTimeMills')}ms"
    ack_load = f"{figure('ackThreadPoolQueueSize', 'N')},{figure('ackThreadPoolQueueHeadWaitTimeMills', 'N')}ms"
    return BASE_ROW.format(
        cluster_name,
        broker_name,
        broker_id,
        address,
        figure("brokerVersionDesc"),
        f"{_rate(figures, 'putTps'):>9}({send_load})",
        f"{_rate(figures, 'getTransferredTps'):>9}({pull_load}|{ack_load})",
        timer_text(figures or {}),
        figure("pageCacheLockTimeMills"),
        fixed(_hours(figures, now_ms), 2),
        fixed(parse_number((figures or {}).get("commitLogDiskRatio")), 4),
        "true" if (figures or {}).get("brokerActive", "").lower() == "true" else "false",
    )


def _reader(figures: Mapping[str, str] | None) -> Callable[..., str]:
    """Return a look-up that prints like Apache's: empty without an answer, null for a missing value."""

    def figure(name: str, missing: str | None = None) -> str:
        return "" if figures is None else text_or_null(figures.get(name, missing))

    return figure


def _rate(figures: Mapping[str, str] | None, name: str) -> str:
    """Return the first of a rate's averages over 10 s, 1 min and 10 min."""
    averages = (figures or {}).get(name, "").split()
    return fixed(parse_number(averages[0] if averages else None), 2)


def _hours(figures: Mapping[str, str] | None, now_ms: int) -> float:
    """Return the age of the oldest message in hours."""
    earliest = (figures or {}).get("earliestMessageTimeStamp", "")
    return (now_ms - int(earliest)) / MS_PER_HOUR if earliest else 0.0


def timer_text(figures: Mapping[str, str]) -> str:
    """Return the timer's lag and its rates; the values after the first missing one count as zero."""
    values = [0.0] * 5
    names = ("timerReadBehind", "timerOffsetBehind", "timerCongestNum", "timerEnqueueTps", "timerDequeueTps")
    for position, name in enumerate(names):
        if name not in figures:
            break
        values[position] = parse_number(figures[name])
    read, offset, congested, enqueue, dequeue = values
    congestion = fixed(congested / 10000.0, 1)
    return f"{int(read)}-{int(offset)}({congestion}w, {fixed(enqueue, 1)}, {fixed(dequeue, 1)})"


def more_row(cluster_name: str, broker_name: str, figures: Mapping[str, str]) -> str:
    """Return messages in and out, yesterday and today; all zero if a value is missing."""
    try:
        now, morning, yesterday = (
            [int(figures[f"msg{way}Total{when}"]) for way in ("Put", "Get")]
            for when in ("TodayNow", "TodayMorning", "YesterdayMorning")
        )
    except (KeyError, ValueError):
        return _MORE.format(cluster_name, broker_name, 0, 0, 0, 0)
    past = [later - earlier for later, earlier in zip(morning, yesterday, strict=True)]
    today = [later - earlier for later, earlier in zip(now, morning, strict=True)]
    return _MORE.format(cluster_name, broker_name, *past, *today)


async def broker_status(admin: AdminContext, line: CommandLine) -> None:
    if "b" in line:
        address = line.value("b")
        _show(admin, address, "", await _status(admin, address))
        return
    for address in all_addresses(await admin.cluster_info(), line.value("c")):
        try:
            figures = await _status(admin, address)
        except (ProtocolError, RemotingError) as error:
            admin.warn(f"no metrics from broker {address}: {error}")
            continue
        _show(admin, address, f"{address:<24} ", figures)


def _show(admin: AdminContext, address: str, prefix: str, figures: dict[str, str]) -> None:
    lines = [f"{prefix}{key:<32}: {value}" for key, value in sorted(figures.items())]
    admin.say("\n".join(lines), broker=address, figures=figures)


async def _status(admin: AdminContext, address: str) -> dict[str, str]:
    table = await admin.broker_runtime(address)
    if any(key.startswith(PREFIX) for key in table):
        return table
    try:
        answer = await admin.invoke(address, RequestCode.GET_BROKER_HA_STATUS)
    except BrokerError:  # a broker without replication refuses
        return table
    return table | slave_rows(decode_body(HARuntimeInfo, answer.body))
