"""Producers and consumers in plain calls, from threads, against a broker on another one."""

from __future__ import annotations

import asyncio
import queue
import threading
import time
from concurrent.futures import as_completed
from datetime import UTC, datetime
from typing import Any

import pytest

from tests.support.faces import ServedCluster, threads
from twisted_mq.blocking import (
    CallTimedOut,
    ClientOptionIllegal,
    ClientStateError,
    ConsumeFromWhere,
    ConsumeOrderlyStatus,
    ConsumerOptions,
    ConsumeStatus,
    DeliveryEnded,
    LitePullConsumer,
    Message,
    MessageIllegal,
    MQClient,
    NameServerUnreachable,
    Producer,
    ProducerOptions,
    PushConsumer,
    SendStatus,
    TransactionProducer,
    TransactionState,
)
from twisted_mq.blocking.pending import Pending

FACES = [Producer, PushConsumer, LitePullConsumer]
FIRST = ConsumerOptions(consume_from_where=ConsumeFromWhere.FIRST_OFFSET)
BACKGROUND = "rocketmq"


def consumer(cluster: ServedCluster, group: str, topic: str, **arguments: Any) -> PushConsumer:
    return PushConsumer(cluster.namesrv, group=group, topics={topic: "*"}, **{"options": FIRST} | arguments)


def polling(cluster: ServedCluster, group: str, topic: str, **arguments: Any) -> LitePullConsumer:
    return LitePullConsumer(cluster.namesrv, group=group, topics={topic: "*"}, options=FIRST, **arguments)


def filled(cluster: ServedCluster, *bodies: bytes, queues: int = 1) -> str:
    """A new topic with these messages."""
    topic = cluster.topic(queues)
    with Producer(cluster.namesrv, group="senders") as producer:
        for body in bodies:
            producer.send(Message(topic, body))
    return topic


def in_threads(count: int, work: Any) -> None:
    failed: list[BaseException] = []

    def guarded() -> None:
        try:
            work()
        except BaseException as error:
            failed.append(error)

    running = [threading.Thread(target=guarded) for _ in range(count)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    assert failed == []


# producers


def test_sends(cluster: ServedCluster, group: str) -> None:
    topic = cluster.topic()
    with Producer(cluster.namesrv, group=group) as producer:
        first = producer.send(Message(topic, b"one", tags="new"), timeout=30)
        batch = producer.send_batch([Message(topic, b"a"), Message(topic, b"b")])
        batches = producer.send_batches([Message(topic, b"a"), Message(topic, b"b")])
        by_key = producer.send_by_key(Message(topic, b"k"), "order-1")
        producer.send_one_way(Message(topic, b"w"))
        assert producer.publish_queues(topic) == (first.queue,)
    assert (first.status, first.queue_offset) == (SendStatus.SEND_OK, 0)
    assert (batch.queue_offset, [one.queue_offset for one in batches], by_key.queue_offset) == (1, [3], 5)


def test_threads_share_a_producer(cluster: ServedCluster, group: str) -> None:
    topic, offsets = cluster.topic(), []
    with Producer(cluster.namesrv, group=group) as producer:

        def work() -> None:
            offsets.extend(producer.send(Message(topic, b"x")).queue_offset for _ in range(25))

        in_threads(4, work)
    assert sorted(offsets) == list(range(100))


def test_many_messages_of_one_thread_are_under_way_together(cluster: ServedCluster, group: str) -> None:
    topic = cluster.topic()
    options = ProducerOptions(max_in_flight=64)
    told: queue.SimpleQueue[int] = queue.SimpleQueue()
    with Producer(cluster.namesrv, group=group, options=options) as producer:
        producer.send(Message(topic, b"first"))
        sent = [producer.send_async(Message(topic, b"%d" % number)) for number in range(200)]
        sent[-1].add_done_callback(lambda future: told.put(future.result().queue_offset))
        assert sorted(one.result().queue_offset for one in sent) == list(range(1, 201))
        assert told.get(timeout=60) in range(1, 201)
        later = [producer.send_async(Message(topic, b"x")) for _ in range(8)]
        assert [one.exception() for one in as_completed(later, timeout=60)] == [None] * 8


def test_futures_have_the_errors_of_the_client(cluster: ServedCluster, group: str) -> None:
    with Producer(cluster.namesrv, group=group) as producer:
        refused = producer.send_async(Message("T", b""))
        assert isinstance(refused.exception(), MessageIllegal)
        with pytest.raises(MessageIllegal, match="the body is empty"):
            refused.result()
        assert (refused.cancel(), refused.cancelled(), refused.running()) == (False, False, False)
        waits = Pending[None](producer._checked())
        producer._act()(waits.begin, never)
        with pytest.raises(TimeoutError):
            waits.result(timeout=0.01)
        assert waits.running()
    with pytest.raises(ClientStateError, match="not running"):
        producer.send_async(Message("T", b"x"))


def test_a_producer_that_stops_lets_its_futures_end(cluster: ServedCluster, group: str) -> None:
    topic = cluster.topic()
    with Producer(cluster.namesrv, group=group) as producer:
        sent = [producer.send_async(Message(topic, b"x")) for _ in range(100)]
    assert sorted(one.result(timeout=0).queue_offset for one in sent) == list(range(100))


def test_errors_are_those_of_the_client(cluster: ServedCluster, group: str) -> None:
    with Producer(cluster.namesrv, group=group) as producer, pytest.raises(MessageIllegal, match="the body is empty"):
        producer.send(Message("T", b""))
    with (
        Producer("127.0.0.1:1", group=group) as producer,
        pytest.raises(NameServerUnreachable, match=r"127\.0\.0\.1:1"),
    ):
        producer.send(Message("T", b"x"))


def test_a_call_that_takes_too_long_is_given_up(cluster: ServedCluster, group: str) -> None:
    with Producer(cluster.namesrv, group=group) as producer:
        with pytest.raises(CallTimedOut, match=r"no result within 0\.25 s") as caught:
            producer._ask(lambda: never(), timeout=0)
        assert isinstance(caught.value, TimeoutError)


def never() -> Any:
    from twisted.internet import defer

    return defer.Deferred()


@pytest.mark.parametrize("made", FACES)
def test_misspelt_argument_names_the_class_that_was_called(made: type) -> None:
    with pytest.raises(TypeError, match=rf"^{made.__name__}.__init__\(\) got an unexpected keyword argument 'grupo'"):
        made("127.0.0.1:1", group="g", grupo="h")


@pytest.mark.parametrize("made", FACES)
def test_bad_arguments_are_refused_before_anything_runs(made: type) -> None:
    with pytest.raises(ClientOptionIllegal, match="a b"):
        made("127.0.0.1:1", group="a b")
    with pytest.raises(ClientOptionIllegal, match="no port"):
        made("no port", group="g")


def test_name_servers_may_come_from_the_environment(
    cluster: ServedCluster, group: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ClientOptionIllegal, match="NAMESRV_ADDR"):
        Producer(group=group)
    monkeypatch.setenv("NAMESRV_ADDR", cluster.namesrv)
    with Producer(group=group) as producer:
        assert producer.send(Message(cluster.topic(), b"x")).status is SendStatus.SEND_OK


def test_local_transactions_run_in_the_thread_that_sends(cluster: ServedCluster, group: str) -> None:
    ran: list[Any] = []

    def book(message: Message) -> TransactionState:
        ran.append((message.body, threading.current_thread()))
        return TransactionState.COMMIT

    def fail(message: Message) -> TransactionState:
        raise ValueError("no room")

    topic = cluster.topic()
    with TransactionProducer(cluster.namesrv, group=group, check=book) as producer:
        done = producer.send_in_transaction(Message(topic, b"room 12"), book)
        failed = producer.send_in_transaction(Message(topic, b"room 13"), fail)
        checked = producer._call(lambda: producer._core._check(Message(topic, b"room 14")))
    assert (done.state, done.error) == (TransactionState.COMMIT, None)
    assert (failed.state, repr(failed.error)) == (TransactionState.UNKNOWN, "ValueError('no room')")
    assert checked is TransactionState.COMMIT
    assert ran[0] == (b"room 12", threading.current_thread())
    assert ran[1][0] == b"room 14" and ran[1][1].name not in ("MainThread", BACKGROUND)


# life


def test_used_before_the_start_and_after_the_stop_it_says_so(cluster: ServedCluster, group: str) -> None:
    producer = Producer(cluster.namesrv, group=group)
    for _ in range(2):
        with pytest.raises(ClientStateError, match="not running"):
            producer.send(Message("T", b"x"))
        producer.stop()
        with producer:
            pass


def test_in_an_event_loop_it_refuses_and_names_what_to_use(cluster: ServedCluster, group: str) -> None:
    async def main(producer: Producer) -> None:
        for call in (lambda: producer.send(Message("T", b"x")), producer.start):
            with pytest.raises(ClientStateError, match=r"twisted_mq\.aio"):
                call()
        result = await asyncio.to_thread(producer.send, Message(cluster.topic(), b"x"))
        assert result.status is SendStatus.SEND_OK

    with Producer(cluster.namesrv, group=group) as producer:
        asyncio.run(main(producer))


def test_the_background_thread_lives_while_anything_is_started(cluster: ServedCluster, group: str) -> None:
    def running() -> int:
        return [thread.name for thread in threading.enumerate()].count(BACKGROUND)

    clusters = running()
    with Producer(cluster.namesrv, group=group):
        with Producer(cluster.namesrv, group=f"{group}-2"):
            assert running() == clusters + 1
        assert running() == clusters + 1
    assert running() == clusters


def test_a_start_that_fails_leaves_nothing_running(group: str) -> None:
    before = threads()
    for made in (PushConsumer, LitePullConsumer):
        with pytest.raises(ClientStateError, match="no subscription"):
            made("127.0.0.1:1", group=group).start()
    assert threads() == before


def test_members_of_one_client_share_its_connections(cluster: ServedCluster, group: str) -> None:
    client = MQClient(cluster.namesrv)
    with Producer(group=group, client=client) as one, Producer(group=f"{group}-2", client=client) as other:
        topic = cluster.topic()
        one.send(Message(topic, b"x"))
        other.send(Message(topic, b"x"))
        channels = sorted(client.core.remoting._channels)
    assert channels == sorted([cluster.namesrv, cluster.cluster.broker_address])


def test_a_stop_ends_the_calls_of_other_threads(cluster: ServedCluster, group: str) -> None:
    consumed = consumer(cluster, group, cluster.topic())
    polled = polling(cluster, f"{group}-2", cluster.topic())
    ended: list[Any] = []
    consumed.start()
    polled.start()
    iterating = threading.Thread(target=lambda: ended.append([*consumed]))
    asking = threading.Thread(target=lambda: ended.append(polled.poll(timeout=3600)))
    iterating.start()
    asking.start()
    consumed.stop()
    iterating.join()
    polled.stop()
    asking.join()
    assert ended == [[], []]


# consumers


def test_acknowledged_messages_are_consumed(cluster: ServedCluster, group: str) -> None:
    topic = filled(cluster, b"1", b"2", b"3")
    with consumer(cluster, group, topic) as first:
        messages = iter(first)
        for message in (next(messages), next(messages)):
            message.ack()
    assert cluster.committed(group, topic) == 2
    with consumer(cluster, group, topic) as second:
        last = next(iter(second))
        last.ack()
        with pytest.raises(DeliveryEnded, match="it was acknowledged"):
            last.ack()
    assert (last.body, cluster.committed(group, topic)) == (b"3", 3)


def test_what_waits_is_handed_out_and_settled_without_a_call_to_the_background_thread(
    cluster: ServedCluster, group: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*call: object) -> None:
        raise AssertionError("called")

    topic = filled(cluster, *(b"%d" % number for number in range(8)))
    with consumer(cluster, group, topic) as consumed:
        while len(consumed._deliveries._waiting) < 8:
            time.sleep(0.001)
        messages, seen = iter(consumed), []
        with monkeypatch.context() as without_calls:
            without_calls.setattr(consumed, "_call", refuse)
            for _ in range(8):
                message = next(messages)
                message.ack()
                seen.append(message.body)
    assert seen == [b"%d" % number for number in range(8)]
    assert cluster.committed(group, topic) == 8


def test_iteration_ends_when_nothing_came_for_a_time(cluster: ServedCluster, group: str) -> None:
    with consumer(cluster, group, cluster.topic()) as consumed:
        assert list(consumed.messages(timeout=0.01)) == []


def test_what_was_not_acknowledged_comes_again(cluster: ServedCluster, group: str) -> None:
    topic = filled(cluster, b"1", b"2")
    with consumer(cluster, group, topic) as first:
        given_up = next(iter(first))
    with pytest.raises(DeliveryEnded, match="the consumer stopped; it will be delivered again"):
        given_up.ack()
    assert not cluster.committed(group, topic)
    with consumer(cluster, group, topic) as second:
        messages = iter(second)
        assert [next(messages).body, next(messages).body] == [b"1", b"2"]


def test_what_is_sent_back_comes_again_with_one_try_more(cluster: ServedCluster, group: str) -> None:
    topic, seen = filled(cluster, b"1"), []
    with consumer(cluster, group, topic) as consumed:
        for message in consumed:
            seen.append(message.reconsume_times)
            if message.reconsume_times:
                message.ack()
                break
            message.retry(delay_level=1)
    assert seen == [0, 1]


def test_automatic_acknowledgement_comes_with_the_next_message(cluster: ServedCluster, group: str) -> None:
    topic = filled(cluster, b"1", b"2")
    with consumer(cluster, group, topic, auto_ack=True) as consumed:
        messages = iter(consumed)
        seen = [next(messages), next(messages)]
        assert [message._delivery.ended for message in seen] == ["it was acknowledged", None]
        messages.close()
        assert seen[1]._delivery.ended == "it was sent back"
    assert cluster.committed(group, topic) == 2  # the second waits in the retry topic


def test_a_loop_that_fails_has_its_message_sent_back(cluster: ServedCluster, group: str) -> None:
    topic = filled(cluster, b"1", b"2")
    for auto_ack in (True, False):
        consumed = consumer(cluster, f"{group}-{auto_ack}", topic, auto_ack=auto_ack)
        with pytest.raises(ValueError, match="1"), consumed:
            for message in consumed:
                raise ValueError(message.body)
        assert cluster.committed(f"{group}-{auto_ack}", topic) == 1


def test_in_order_the_next_message_waits_for_the_one_before(cluster: ServedCluster, group: str) -> None:
    topic, seen = filled(cluster, b"1", b"2"), []
    with consumer(cluster, group, topic, orderly=True) as consumed:
        for message in consumed:
            seen.append(message.body)
            if seen == [b"1"]:
                message.retry(suspend_seconds=0.01)
                continue
            message.ack()
            if message.body == b"2":
                break
    assert seen == [b"1", b"1", b"2"]


def test_several_threads_share_the_messages(cluster: ServedCluster, group: str) -> None:
    topic, seen = filled(cluster, *(b"%d" % number for number in range(40)), queues=2), []
    with consumer(cluster, group, topic) as consumed:

        def work() -> None:
            for message in consumed:
                message.ack()
                seen.append(message.body)
                if len(seen) == 40:
                    consumed.stop()

        in_threads(5, work)
    assert sorted(seen) == sorted(b"%d" % number for number in range(40))


def test_a_listener_may_block_in_its_thread(cluster: ServedCluster, group: str) -> None:
    topic, together = filled(cluster, b"1", b"2", b"3", b"4"), threading.Barrier(5)

    def on_messages(messages: Any, context: Any) -> ConsumeStatus:
        together.wait()
        return ConsumeStatus.CONSUME_SUCCESS

    with consumer(cluster, group, topic, listener=on_messages) as consumed:
        together.wait()  # all four calls are open at once
        with pytest.raises(ClientStateError, match="has a listener"):
            consumed.messages()
    assert cluster.committed(group, topic) == 4


def test_an_orderly_listener_gets_one_after_the_other(cluster: ServedCluster, group: str) -> None:
    topic, seen, enough = filled(cluster, b"1", b"2", b"3"), [], threading.Event()

    def on_messages(messages: Any, context: Any) -> ConsumeOrderlyStatus:
        seen.extend(message.body for message in messages)
        if len(seen) == 3:
            enough.set()
        return ConsumeOrderlyStatus.SUCCESS

    consumed = consumer(cluster, group, topic)
    consumed.listen_orderly(on_messages)
    with consumed:
        enough.wait()
    assert seen == [b"1", b"2", b"3"]


def test_polls(cluster: ServedCluster, group: str) -> None:
    topic = filled(cluster, b"1", b"2", b"3", b"4")
    with polling(cluster, group, topic, auto_commit=False) as consumed:
        first = consumed.poll(timeout=3600, max_messages=1)
        rest = consumed.poll(timeout=3600)
        consumed.commit()
        (queue,) = consumed.queues
        assert consumed.committed(queue) == 4
        consumed.seek_to_begin(queue)
        assert [message.body for message in consumed.poll(timeout=3600)] == [b"1", b"2", b"3", b"4"]
        consumed.seek(queue, 3)
        assert next(iter(consumed)).body == b"4"
        consumed.seek_to_end(queue)
        assert consumed.poll(timeout=0.01) == []
        assert consumed.offset_for_time(queue, datetime(2001, 1, 1, tzinfo=UTC)) == 0
        assert consumed.fetch_queues(topic) == [queue]
        consumed.pause()
        assert consumed.is_paused(queue)
        consumed.resume(queue)
    assert [message.body for message in [*first, *rest]] == [b"1", b"2", b"3", b"4"]


def test_an_iteration_that_fails_does_not_commit_its_last_message(cluster: ServedCluster, group: str) -> None:
    topic = filled(cluster, b"1", b"2", b"3")
    with pytest.raises(ValueError, match="2"), polling(cluster, group, topic) as consumed:
        for message in consumed:
            if message.body == b"2":
                raise ValueError(message.body)
    assert cluster.committed(group, topic) == 1


def test_only_what_was_iterated_counts_as_consumed(cluster: ServedCluster, group: str) -> None:
    """However many were pulled, and handed to the thread that iterates, together."""
    topic = filled(cluster, *(b"%d" % number for number in range(8)))
    with polling(cluster, group, topic) as polled:
        messages = polled.messages()
        seen = [next(messages).body for _ in range(3)]
    assert (seen, polled.metrics.consumed, cluster.committed(group, topic)) == ([b"0", b"1", b"2"], 3, 3)


def test_a_poll_goes_on_behind_an_iteration_that_was_left(cluster: ServedCluster, group: str) -> None:
    topic = filled(cluster, *(b"%d" % number for number in range(8)))
    with polling(cluster, group, topic, auto_commit=False) as polled:
        for message in polled.messages():
            if message.body == b"4":
                break
        del message
        assert [one.body for one in polled.poll()] == [b"5", b"6", b"7"]
        polled.commit()
    assert cluster.committed(group, topic) == 8


def test_a_seek_ends_what_was_pulled_before_it(cluster: ServedCluster, group: str) -> None:
    topic = filled(cluster, *(b"%d" % number for number in range(4)))
    with polling(cluster, group, topic) as polled:
        messages = polled.messages(timeout=60)
        seen = [next(messages).body, next(messages).body]
        polled.seek(polled.queues[0], 0)
        seen += [next(messages).body for _ in range(4)]
    assert seen == [b"0", b"1", b"0", b"1", b"2", b"3"]
    assert cluster.committed(group, topic) == 4
