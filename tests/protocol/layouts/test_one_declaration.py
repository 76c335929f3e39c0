"""A change of MESSAGE, the one declaration of the record, changes codec, numpy columns, Spark's schema and pages together."""

from __future__ import annotations

import ast
import inspect
import json
import os
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import pytest

from tests.support.changed_layout import VARIABLE
from twisted_mq.protocol.layouts import plain_messages, record_codec
from twisted_mq.protocol.layouts.record import HEAD_NAMES, RecordHead
from twisted_mq.protocol.messages.message import LateField, MessageExt
from twisted_mq.storage.appending.appender import Appender

ROOT = Path(__file__).parents[3]
SWAPPED = "MESSAGE,queue_id:flag,born_timestamp:store_timestamp,queue_offset:physical_offset"
LAYOUTS = "tests/protocol/layouts/"
COMPARED = (
    LAYOUTS + "test_record_codec.py::test_any_record_encodes_as_construct_builds_it",
    LAYOUTS + "test_record_codec.py::test_dispatch_takes_what_queues_and_index_need",
    LAYOUTS + "test_derive.py::test_any_record_head_reads_alike_in_all_forms",
    LAYOUTS + "test_joined_records.py",
    LAYOUTS + "test_batch_records.py",
    LAYOUTS + "test_ordinary_records.py",
    LAYOUTS + "test_record_columns.py",
    "tests/storage/test_store_contract.py",
    "tests/spark/columns/test_makers.py",
    "tests/spark/columns/test_inner_batches.py",
)
"""Tests that compare the forms of a record with each other, where no byte is typed in."""
OF_APACHE = "not apache and not recorded"
"""Its stores do not follow our declaration."""

SHOWN = """
import json, tests.support.changed_layout
from docs.generate.layouts import rows
from twisted_mq.protocol.layouts.record import MESSAGE
from twisted_mq.protocol.layouts.record_columns import heads_at
from twisted_mq.protocol.layouts.record_codec import decode_message, encode_record
from twisted_mq.spark.columns.schema import spark_ddl
import numpy as np

host = bytes(8)
raw = encode_record(b"T", b"b", b"", queue_id=1, queue_offset=2, physical_offset=3, born_timestamp=4, born_host=host,
                    store_timestamp=5, store_host=host, flag=6, sys_flag=0, reconsume_times=7)
parsed, head, message = MESSAGE.parse(raw), heads_at(raw, np.array([0]))[0], decode_message(raw)
names = ("queue_id", "flag", "queue_offset", "born_timestamp", "store_timestamp", "reconsume_times")
print(json.dumps({
    "construct": [parsed[name] for name in names],
    "numpy": [head[name].item() for name in names],
    "codec": [getattr(message, name) for name in names],
    "spark": spark_ddl(["queueId", "flag"]),
    "pages": [[row.offset, row.size, row.name] for row in rows("MESSAGE", MESSAGE)][3:6],
}))
"""


def run(changes: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, VARIABLE: changes, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, *arguments]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=300)


def test_two_fields_change_places_and_all_forms_agree() -> None:
    options = ("-p", "tests.support.changed_layout", "-p", "no:cacheprovider", "-q", "-k", OF_APACHE)
    done = run(SWAPPED, "-m", "pytest", *options, *COMPARED)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    ("changes", "spark", "pages"),
    [
        (
            "MESSAGE,queue_id:flag",
            "`queueId` int, `flag` int",
            [[12, 4, "flag"], [16, 4, "queue_id"], [20, 8, "queue_offset"]],
        ),
        (
            "MESSAGE,flag=Int64sb",
            "`queueId` int, `flag` bigint",
            [[12, 4, "queue_id"], [16, 8, "flag"], [24, 8, "queue_offset"]],
        ),
    ],
    ids=["swapped", "wider"],
)
def test_codec_numpy_spark_and_pages_change_together(changes: str, spark: str, pages: list[list[Any]]) -> None:
    done = run(changes, "-c", SHOWN)
    assert done.returncode == 0, done.stderr
    values = [1, 6, 2, 4, 5, 7]
    assert json.loads(done.stdout) == {
        "construct": values,
        "numpy": values,
        "codec": values,
        "spark": spark,
        "pages": pages,
    }


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ("MESSAGE,queue_id:body_length", "'queue_id' is not the length of 'body'"),
        ("MESSAGE,size:magic", "a blank has size, magic, the declaration magic, size"),
        ("MESSAGE,body:topic", "is not the length of"),
        ("MESSAGE,queue_offset:reconsume_times", "no leading field 'queue_offset'"),
        ("MESSAGE,body_crc:reconsume_times", "the code has body_crc, body_length"),
        ("EXT_FIELD,name:value", "'name_length' is not the length of 'value'"),
        ("FRAME,length:mark", "the code has length, mark, the declaration mark, length"),
        ("HEADER,remark:ext_fields", "'remark_length' is not the length of 'ext_fields'"),
    ],
)
def test_what_the_code_cannot_follow_stops_the_import(changes: str, reason: str) -> None:
    imported = (
        "tests.support.changed_layout, twisted_mq.protocol.layouts.batch_records, twisted_mq.protocol.wire.answers"
    )
    done = run(changes, "-c", f"import {imported}")
    assert done.returncode == 1
    assert reason in done.stderr


ANSWERED = """
import tests.support.changed_layout
from twisted_mq.protocol.headers import SendMessageResponseHeader
from twisted_mq.protocol.wire.answers import answer_encoder
from twisted_mq.protocol.wire.command import HEADER, RemotingCommand
from twisted_mq.protocol.wire.extfields import decode_binary_fields
from twisted_mq.protocol.wire.framing import FRAME, FrameDecoder, encode_frame

request = RemotingCommand.request(310, {"a": "b"})
request.serialize_type, request.opaque = 1, 77
for remark in (None, "why"):
    answer = request.answer(5, remark, {"msgId": "x", "queueId": "3", "queueOffset": "4"})
    whole = encode_frame(answer)
    frame = FRAME.parse(whole)
    header = HEADER.parse(frame.header)
    assert (header.code, header.opaque, header.flag, header.version) == (5, 77, 1, 479)
    assert decode_binary_fields(header.ext_fields) == {"msgId": "x", "queueId": "3", "queueOffset": "4"}
    (read,) = FrameDecoder().receive_data(whole)
    assert (read.code, read.opaque, read.flag, read.version, read.remark) == (5, 77, 1, 479, remark)
    encode = answer_encoder(SendMessageResponseHeader)
    assert encode(request, 5, remark, 0, msg_id="x", queue_id=3, queue_offset=4) == whole
"""


@pytest.mark.parametrize("changes", ["HEADER,opaque:flag,code:version", "HEADER,language:opaque"])
def test_frames_and_their_answers_follow_the_declaration_of_a_header(changes: str) -> None:
    done = run(changes, "-c", ANSWERED)
    assert done.returncode == 0, done.stderr


# Calls by position, which are quicker than by keyword: each name stands where it has to


def names_passed(function: Callable[..., Any], called: str) -> list[str]:
    """The last name of each argument of the first call of `called` in a function; "" for one that is computed."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call) and ast.unparse(node.func) == called)
    return [_last_name(argument) for argument in next(calls).args]


def _last_name(argument: ast.expr) -> str:
    if isinstance(argument, ast.Attribute):
        return argument.attr.removeprefix("_")
    return argument.id if isinstance(argument, ast.Name) else ""


def same_or_computed(passed: list[str], wanted: list[str], **called_otherwise: str) -> bool:
    pairs = zip(passed, wanted, strict=True)
    return all(name in ("", one, called_otherwise.get(one)) for name, one in pairs)


def test_the_head_has_the_layout_s_names() -> None:
    assert RecordHead._fields == HEAD_NAMES


def test_the_encoder_packs_the_head_s_fields() -> None:
    assert names_passed(record_codec.encode_record, "head.pack") == list(RecordHead._fields)


@pytest.mark.parametrize("decode", [record_codec.decode_message, plain_messages.decode_plain_messages])
def test_the_decoders_read_the_head_s_fields_by_their_names(decode: Callable[..., object]) -> None:
    tree = ast.parse(textwrap.dedent(inspect.getsource(decode)))
    targets = [node.targets[0] for node in ast.walk(tree) if isinstance(node, ast.Assign)]
    tuples = [[_last_name(one) for one in target.elts] for target in targets if isinstance(target, ast.Tuple)]
    (head,) = [names for names in tuples if len(names) == len(RecordHead._fields)]
    assert {*same_or_left_out(head)} == {True}
    assert head.count("_") < len(head) / 2 + 1


def same_or_left_out(head: list[str]) -> list[bool]:
    return [name in ("_", field) for name, field in zip(head, RecordHead._fields, strict=True)]


def test_each_field_of_a_message_is_held_or_made_late() -> None:
    message = record_codec.decode_message(
        record_codec.encode_record(b"T", b"b", b"k\x01v\x02", 1, 2, 3, 4, bytes(8), 5, bytes(8))
    )
    late = {name for name, value in vars(MessageExt).items() if isinstance(value, LateField)}
    held = {name for name in vars(message) if not name.startswith("_")}
    assert late | held == {field.name for field in attrs.fields(MessageExt)}
    assert not late & held


def test_the_appender_passes_the_encoder_s_parameters() -> None:
    wanted = list(inspect.signature(record_codec.encode_record).parameters)
    passed = names_passed(Appender.put, "encode_record")
    assert "" not in passed
    assert same_or_computed(
        passed,
        wanted[: len(passed)],
        topic="topic_bytes",
        physical_offset="offset",
        store_timestamp="timestamp",
    )
