"""Describes a broker's refusal: the code's name, the remark as it is, and the next step."""

from __future__ import annotations

from collections.abc import Sequence

from twisted_mq.protocol.codes import ResponseCode
from twisted_mq.protocol.errors import BrokerError

NEXT_STEPS: dict[int, str] = {
    ResponseCode.TOPIC_NOT_EXIST: ("Create the topic: mqadmin updateTopic -n {servers} -c DefaultCluster -t {topic}"),
    ResponseCode.NO_PERMISSION: (
        "Check the permission of broker and topic: mqadmin topicRoute -n {servers} -t {topic}. If the cluster has accounts, "
        "check the rights of yours"
    ),
    ResponseCode.MESSAGE_ILLEGAL: (
        "Check the broker's limits (maxMessageSize): mqadmin getBrokerConfig -n {servers} -c DefaultCluster"
    ),
    ResponseCode.SYSTEM_BUSY: "Check the load of the broker: mqadmin brokerStatus -n {servers} -c DefaultCluster",
    ResponseCode.SERVICE_NOT_AVAILABLE: (
        "Check the disk and the role of the broker: mqadmin brokerStatus -n {servers} -c DefaultCluster"
    ),
    ResponseCode.FLOW_CONTROL: "Check the load of the broker: mqadmin brokerStatus -n {servers} -c DefaultCluster",
    ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST: (
        "Create the group: mqadmin updateSubGroup -n {servers} -c DefaultCluster -g GROUP"
    ),
}
"""Response code -> next step; `servers` and `topic` are filled in."""


def code_name(code: int) -> str:
    """Return the code's name (SYSTEM_BUSY for 2), or the number if it has no name."""
    return ResponseCode(code).name if code in ResponseCode.__members__.values() else str(code)


def described(error: BaseException, topic: str, name_servers: Sequence[str]) -> str:
    """Describe a refusal in one or two sentences; return the text of any other error."""
    if not isinstance(error, BrokerError):
        return str(error)
    code = int(error.response_code)
    text = f"{code_name(code)} ({code}): {error.remark}"
    step = NEXT_STEPS.get(code)
    return text if step is None else f"{text.rstrip('.')}. {step.format(servers=';'.join(name_servers), topic=topic)}"
