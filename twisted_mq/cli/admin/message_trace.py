"""Implements `mqadmin queryMsgTraceById` (Apache: QueryMsgTraceByIdSubCommand, TraceView): a message's life, by its traces."""

from __future__ import annotations

from twisted_mq.admin.found_messages import FOREVER_MS, messages_of_key
from twisted_mq.admin.traces import traces_of
from twisted_mq.cli.admin.calls import AdminContext
from twisted_mq.cli.admin.command_line import CommandLine
from twisted_mq.cli.admin.java_format import date_text, hash_order
from twisted_mq.cli.admin.tables import TextTable
from twisted_mq.protocol.messages.trace import TRACE_TOPIC, ConsumeEndTrace, PublishTrace

_ROW = "{:<10} {:<20} {:<20} {:<20} {:<10} {:<10}"
PUBLISHED = TextTable.of(
    _ROW, type="#Type", group="#ProducerGroup", clientHost="#ClientHost",
    time="#SendTime", costTime="#CostTimes", status="#Status",
)  # fmt: skip
CONSUMED = TextTable.of(
    _ROW, type="#Type", group="#ConsumerGroup", clientHost="#ClientHost",
    time="#ConsumerTime", costTime="#CostTimes", status="#Status",
)  # fmt: skip


async def query_msg_trace_by_id(admin: AdminContext, line: CommandLine) -> None:
    message_id = line.value("i")
    found = await messages_of_key(
        admin,
        line.value("t") or TRACE_TOPIC,
        message_id,
        line.number("c", 64),
        line.number("b", 0),
        line.number("e", FOREVER_MS),
    )
    shown = [one for message in found for one in traces_of(message, message_id)]
    traces = [(trace, host) for trace, host in shown if isinstance(trace, PublishTrace | ConsumeEndTrace)]
    for trace, host in traces:
        if isinstance(trace, PublishTrace):
            admin.say(PUBLISHED.head)
            _row(admin, PUBLISHED, "Pub", trace, host)
            admin.say("")
    consumed = [(trace, host) for trace, host in traces if isinstance(trace, ConsumeEndTrace)]
    for group in hash_order(trace.group for trace, _ in consumed):
        admin.say(CONSUMED.head)
        for trace, host in consumed:
            if trace.group == group:
                _row(admin, CONSUMED, "Sub", trace, host)
        admin.say("")


def _row(admin: AdminContext, table: TextTable, kind: str, trace: PublishTrace | ConsumeEndTrace, host: str) -> None:
    status = "success" if trace.success else "failed"
    admin.row(table, kind, trace.group, host, date_text(trace.timestamp), f"{trace.cost_ms}ms", status)
