"""Lists the settings that GET_BROKER_CONFIG shows, with the values in effect, under Apache's keys.

A key that this broker does not read is not shown, because its value would mislead. If the broker always behaves as one
value of such a key says, that value is shown, whatever the file says. Secrets are never shown.
"""

from __future__ import annotations

from twisted_mq.broker.options import BrokerOptions
from twisted_mq.config.options import shown_options
from twisted_mq.config.values import value_text

FIXED: dict[str, bool | int | str] = {
    "autoDeleteUnusedStats": True,
    "autoMessageVersionOnTopicLen": True,
    "disableConsumeIfConsumerReadSlowly": False,
    "duplicationEnable": False,
    "enableControllerMode": False,
    "enableDLegerCommitLog": False,
    "enableDetailStat": True,
    "enableLmq": False,
    "enableMultiDispatch": False,
    "enableRegisterProducer": True,
    "enableScheduleMessageStats": True,
    "enableSingleTopicRegister": False,
    "enableSplitRegistration": False,
    "forceRegister": True,
    "isBrokerContainer": False,
    "isInBrokerContainer": False,
    "lockInStrictMode": False,
    "maxStatsIdleTimeInMinutes": -1,
    "maxTopicLength": 127,
    "messageIndexSafe": True,
    "offsetCheckInSlave": False,
    "storeType": "default",
    "useStaticSubscription": False,
}
"""Apache's keys that are not options here, or options without effect, and the value that describes this broker."""


def settings_text(options: BrokerOptions, ip: str, port: int, ha_address: str) -> str:
    """Return all shown settings as lines of key=value, sorted."""
    values = FIXED | shown_options(options) | _resolved(ip, port, ha_address)
    return "".join(f"{key}={value_text(value)}\n" for key, value in sorted(values.items()))


def _resolved(ip: str, port: int, ha_address: str) -> dict[str, int | str]:
    """Return the settings that were left to the broker: its addresses and ports, and what a slave needs to find it."""
    resolved: dict[str, int | str] = {"brokerIP1": ip, "listenPort": port}
    if ha_address:
        ha_ip, _, ha_port = ha_address.rpartition(":")
        resolved |= {"brokerIP2": ha_ip, "haListenPort": int(ha_port)}
    return resolved
