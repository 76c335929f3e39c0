"""`mqadmin updateSubGroup` (Apache: UpdateSubGroupSubCommand)."""

from __future__ import annotations

from typing import cast

from twisted_mq.cli.admin.calls import AdminContext, chosen_masters
from twisted_mq.cli.admin.command_line import CommandLine, UsageError
from twisted_mq.cli.admin.java_text import value_text
from twisted_mq.cli.admin.update_topic import parse_attributes
from twisted_mq.protocol.bodies import SubscriptionGroupConfig, decode_value, encode_body, to_value
from twisted_mq.protocol.codes import RequestCode
from twisted_mq.protocol.errors import BodyError
from twisted_mq.protocol.text import fastjson
from twisted_mq.protocol.text.json_value import Json

SWITCHES = {
    "s": "consumeEnable",
    "m": "consumeFromMinEnable",
    "d": "consumeBroadcastEnable",
    "o": "consumeMessageOrderly",
    "a": "notifyConsumerIdsChangedEnable",
}
NUMBERS = {
    "q": "retryQueueNums",
    "r": "retryMaxTimes",
    "i": "brokerId",
    "w": "whichBrokerWhenConsumeSlowly",
}
"""Letters of options and the members that they set."""


async def update_sub_group(admin: AdminContext, line: CommandLine) -> None:
    config = read_group(line)
    for address in await chosen_masters(admin, line):
        await admin.invoke(address, RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, body=encode_body(config))
        admin.say(f"create subscription group to {address} success.", broker=address)
    admin.say_value(value_text(config), cast("dict[str, Json]", to_value(config)))


def read_group(line: CommandLine) -> SubscriptionGroupConfig:
    """Return the group that the options describe, otherwise as Apache's tool makes it. Raises UsageError."""
    value: dict[str | int, fastjson.Json] = {
        "groupName": line.value("g"),
        "consumeBroadcastEnable": False,
        "consumeFromMinEnable": False,
        **{name: line.is_true(key) for key, name in SWITCHES.items() if key in line},
        **{name: line.number(key, 0) for key, name in NUMBERS.items() if key in line},
    }
    if "attributes" in line:
        attributes = parse_attributes(line.value("attributes"), "--attributes")
        value["attributes"] = dict(attributes.items())
    try:
        if "p" in line:
            value["groupRetryPolicy"] = fastjson.loads(line.value("p").encode())
        return decode_value(SubscriptionGroupConfig, value)
    except BodyError as error:
        raise UsageError(f"Option -p: {error}") from None
