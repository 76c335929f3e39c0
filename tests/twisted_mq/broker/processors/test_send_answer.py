import attrs
import pytest

from twisted_mq.broker.processors.send import SendAnswers
from twisted_mq.protocol.errors import BrokerError
from twisted_mq.protocol.layouts.host import pack_host
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.protocol.wire.framing import FrameDecoder, encode_frame
from twisted_mq.storage.interfaces import InnerMessage, PutResult, PutStatus

HOSTS = {"ipv4": pack_host("127.0.0.2", 20911), "ipv6": pack_host("::1", 20911)}
RESULT = PutResult(PutStatus.PUT_OK, queue_offset=1234567, physical_offset=0x1D6, end_offset=700)
BATCH_RESULT = attrs.evolve(RESULT, message_count=2, physical_offsets=[0x1D6, 0x2000000001D6])


def message(key: str) -> InnerMessage:
    return InnerMessage("T", 3, b"b", b"", {"UNIQ_KEY": key}, 0)


def read(frame: bytes) -> RemotingCommand:
    (answer,) = FrameDecoder().receive_data(frame)
    answer.ext_fields  # noqa: B018 decoded before the comparison
    return answer


@pytest.mark.parametrize("serialize_type", [0, 1])
@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("key", ["C0000202201A4E0E2F2A66E0EEBE0000", 'with "quote"', "", "é", "k" * 300])
@pytest.mark.parametrize("result", [RESULT, BATCH_RESULT], ids=["one", "batch"])
def test_answer_says_what_the_general_encoder_says(serialize_type: int, host: str, key: str, result: PutResult) -> None:
    command = RemotingCommand(310, opaque=77, serialize_type=serialize_type)
    frame = SendAnswers(HOSTS[host], "DefaultRegion").sent(command, message(key), result, 0)
    ids = [HOSTS[host].hex().upper() + number for number in ("00000000000001D6", "00002000000001D6")]
    fields = {
        "MSG_REGION": "DefaultRegion",
        "TRACE_ON": "true",
        "msgId": ",".join(ids[: result.message_count]),
        "queueId": "3",
        "queueOffset": "1234567",
        "transactionId": key,
    }
    assert frame == encode_frame(command.answer(ext_fields=fields))


def test_batch_answer_lists_all_message_ids() -> None:
    result = PutResult(PutStatus.PUT_OK, 0, 1, 3, 0, 2, [1, 2])
    answer = read(SendAnswers(HOSTS["ipv4"], "R").sent(RemotingCommand(320), message("U"), result, 0))
    assert answer.ext_fields["msgId"] == "7F000002000051AF0000000000000001,7F000002000051AF0000000000000002"


def test_region_may_be_any_text() -> None:
    answer = read(SendAnswers(HOSTS["ipv4"], 'a"%s').sent(RemotingCommand(310), message("U"), RESULT, 0))
    assert answer.ext_fields["MSG_REGION"] == 'a"%s'


def test_refusal_carries_code_remark_and_region_as_apaches() -> None:
    answers = SendAnswers(HOSTS["ipv4"], "DefaultRegion")
    refused = answers.refused(BrokerError(29, "why"))
    assert (refused.response_code, refused.remark) == (29, "why")
    assert refused.ext_fields == {"MSG_REGION": "DefaultRegion", "TRACE_ON": "true"}
    assert answers.refused(BrokerError(1, "why")).ext_fields == {}
