"""Requests with their answers, and the messages in frames, as the recordings have them."""

from __future__ import annotations

from pyspark.sql import SparkSession

from tests.support.captures import CAPTURES, frame_index
from twisted_mq.spark.jobs.requests import pulled_messages, requests, sent_messages
from twisted_mq.spark.tables import register

SCENARIO = "push_consumer_concurrent"


def test_answers_are_those_of_the_recording_and_messages_come_out_of_frames(session: SparkSession) -> None:
    register(session)
    frames = session.read.format("rocketmq.frames").load(str(CAPTURES / "remoting" / f"{SCENARIO}.frames"))
    index = frame_index(SCENARIO)
    asked = requests(frames)
    found = {row.offset: row for row in asked.collect()}
    by_request = {one["answers"]: one for one in index if one["answers"] is not None}
    questions = [one for one in index if one["request_or_response"] == "request"]
    assert sorted(found) == [one["offset"] for one in questions]
    for one in questions:
        row, answer = found[one["offset"]], by_request.get(one["index"])
        assert (row.code, row.name, row.direction) == (one["code"], one["code_name"], one["direction"])
        if answer is None:
            assert (row.result, row.answer, row.latency) == (None, None, None)
        else:
            assert (row.result, row.answer) == (answer["code"], answer["offset"])
            assert (row.latency, len(row.answerBody)) == (answer["t_ms"] - one["t_ms"], answer["body_length"])
    sent = sent_messages(frames).collect()
    pulled = pulled_messages(asked).collect()
    by_key = {(row.topic, row.uniqKey): row for row in sent}
    consumed = [row for row in pulled if (row.topic, row.uniqKey) in by_key]
    assert len(consumed) == len(sent) > 0
    for row in consumed:
        other = by_key[row.topic, row.uniqKey]
        assert (row.body, row.tags, row.keys) == (other.body, other.tags, other.keys)
        assert row.queueOffset >= 0 and other.queueOffset is None


def test_a_batch_is_taken_apart(session: SparkSession) -> None:
    register(session)
    frames = session.read.format("rocketmq.frames").load(str(CAPTURES / "remoting" / "producer_batch.frames"))
    sent = sent_messages(frames.where("code = 320")).collect()
    sends = [one for one in frame_index("producer_batch") if one["code"] == 320]
    assert {row.offset for row in sent} == {one["offset"] for one in sends}
    assert len(sent) > len(sends) and all(row.body and row.uniqKey for row in sent)
