import io
import json

import attrs
import pytest
from twisted.internet import defer
from twisted.internet.task import Clock

from twisted_mq.cli.consume import Printer, check_topic_exists, message_row, writer
from twisted_mq.client.consuming.consumer_options import ConsumeStatus
from twisted_mq.client.core.errors import NameServerUnreachable, TopicNotFound
from twisted_mq.protocol.messages.message import MessageExt

MESSAGE = MessageExt(
    topic="T",
    queue_id=1,
    queue_offset=2,
    physical_offset=300,
    store_size=100,
    body_crc=5,
    sys_flag=0,
    flag=0,
    born_timestamp=1,
    born_host="127.0.0.1:5",
    store_timestamp=2,
    store_host="127.0.0.1:6",
    reconsume_times=0,
    prepared_transaction_offset=0,
    properties={"TAGS": "A", "KEYS": "k1 k2", "UNIQ_KEY": "ID"},
    body=b"hello\n",
    msg_id="OFFSETID",
)


def test_a_plain_row_has_the_id_users_know():
    assert message_row(MESSAGE) == ("T", 1, 2, "ID", "A", "k1 k2", "hello\n")
    bare = attrs.evolve(MESSAGE, properties={}, body=b"\xff")
    assert message_row(bare) == ("T", 1, 2, "OFFSETID", None, "", "\\xff")


def test_rows_follow_a_line_with_the_columns():
    out = io.StringIO()
    writer(None, out)(MESSAGE)
    assert out.getvalue() == ("topic\tqueueId\tqueueOffset\tmsgId\ttags\tkeys\tbody\nT\t1\t2\tID\tA\tk1 k2\thello\\n\n")


@pytest.mark.parametrize("unique_key", ["7F000001", None])
def test_rows_and_json_have_the_same_message_id(unique_key):
    properties = {} if unique_key is None else {"UNIQ_KEY": unique_key}
    message = attrs.evolve(MESSAGE, msg_id="OFFSET", properties=properties)
    value = json.loads(json_of(message))
    assert (value["msgId"], value["offsetMsgId"]) == (unique_key or "OFFSET", "OFFSET")
    assert message_row(message)[3] == value["msgId"]


def json_of(message):
    out = io.StringIO()
    writer("json", out)(message)
    return out.getvalue()


def test_json_has_the_keys_of_the_dump_and_the_body():
    out = io.StringIO()
    writer("json", out)(MESSAGE)
    value = json.loads(out.getvalue())
    assert (value["topic"], value["physicalOffset"], value["bodyLength"], value["body"]) == ("T", 300, 6, "hello\n")


def test_raw_writes_bodies_only():
    out = io.TextIOWrapper(io.BytesIO())
    writer("raw", out)(attrs.evolve(MESSAGE, body=b"\xff\x00"))
    assert out.buffer.getvalue() == b"\xff\x00\n"


def a_printer(count=None, idle_seconds=None):
    clock = Clock()
    written: list[MessageExt] = []
    printer = Printer(clock, written.append, count, idle_seconds)
    printer.begin()
    return printer, clock, written


def test_messages_past_the_count_stay_unconsumed():
    printer, clock, written = a_printer(count=2)
    assert [printer([MESSAGE], None) for _ in range(2)] == [ConsumeStatus.CONSUME_SUCCESS] * 2
    assert not printer.finished.called
    left_open = printer([MESSAGE], None)
    clock.advance(0)
    assert (len(written), left_open.called, printer.finished.called) == (2, False, True)


def test_silence_ends_the_run_and_each_message_puts_it_off():
    printer, clock, written = a_printer(idle_seconds=5)
    clock.advance(4)
    printer([MESSAGE], None)
    clock.advance(4)
    assert not printer.finished.called
    clock.advance(1)
    assert (printer.finished.called, len(written), clock.getDelayedCalls()) == (True, 1, [])


def test_following_never_ends_by_itself():
    printer, clock, _ = a_printer()
    printer([MESSAGE], None)
    assert (clock.getDelayedCalls(), printer.finished.called) == ([], False)


class ConsumerOfMissing:
    """A consumer whose route look-up fails."""

    def __init__(self, error: Exception) -> None:
        self.client = self
        self.routes = self
        self._error = error

    async def find(self, topic: str) -> None:
        raise self._error


def outcome(error: Exception, wait: bool):
    found: list[object] = []
    work = check_topic_exists(ConsumerOfMissing(error), "T", wait=wait)
    defer.Deferred.fromCoroutine(work).addBoth(found.append)
    return getattr(found[0], "value", None)


@pytest.mark.parametrize("wait", [False, True])
def test_without_a_name_server_consuming_fails_at_once(wait):
    error = NameServerUnreachable({"n:1": "refused"})
    assert outcome(error, wait) is error


def test_a_missing_topic_fails_unless_it_is_waited_for(capsys):
    error = TopicNotFound("T", ["n:1"])
    assert outcome(error, wait=False) is error
    assert outcome(error, wait=True) is None
    assert capsys.readouterr().err == f"mq consume: waiting for topic T: {error}\n"
