"""Programs with plain calls as a whole: their end, their forks, and what many starts and stops leave behind."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

import pytest

from tests.support.faces import ServedCluster, open_files, threads
from twisted_mq.blocking import ForkedProcess, Message, Producer, PushConsumer

ROUNDS = int(os.environ.get("MQ_LIFE_ROUNDS", "100"))


def program(text: str, *arguments: str, code: int = 0) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-W", "error::ResourceWarning", "-c", textwrap.dedent(text), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == code, done.stderr
    return done


def test_many_starts_and_stops_leave_nothing_behind(cluster: ServedCluster, group: str) -> None:
    topic = cluster.topic()

    def rounds(count: int) -> None:
        for _ in range(count):
            with (
                Producer(cluster.namesrv, group=group) as producer,
                PushConsumer(cluster.namesrv, group=group, topics={topic: "*"}),
            ):
                producer.send(Message(topic, b"x"))

    rounds(2)
    cluster.settle()
    before = open_files(), threads()
    rounds(ROUNDS)
    cluster.settle()
    assert (open_files(), threads()) == before


def test_a_child_of_a_fork_is_told_to_make_its_own(cluster: ServedCluster, group: str) -> None:
    topic = cluster.topic()
    with Producer(cluster.namesrv, group=group) as producer:
        producer.send(Message(topic, b"of the parent"))
        child = os.fork()
        if not child:
            os._exit(in_child(producer, cluster.namesrv, group, topic))
        _, status = os.waitpid(child, 0)
        assert os.waitstatus_to_exitcode(status) == 0
        assert producer.send(Message(topic, b"of the parent")).queue_offset == 2


def in_child(producer: Producer, namesrv: str, group: str, topic: str) -> int:
    """0 where the parent's producer is refused, and one of the child's own works."""
    try:
        producer.send(Message(topic, b"of the child"))
        return 1
    except ForkedProcess as error:
        if "after the fork" not in str(error):
            return 2
    producer.stop()
    with Producer(namesrv, group=group) as own:
        return 0 if own.send(Message(topic, b"of the child")).queue_offset == 1 else 3


def test_what_is_not_stopped_stops_at_the_interpreters_end(cluster: ServedCluster, group: str) -> None:
    text = """
        import sys
        from twisted_mq.blocking import *
        namesrv, group, topic = sys.argv[1:]
        producer = Producer(namesrv, group=group)
        producer.start()
        producer.send(Message(topic, b"x"))
        options = ConsumerOptions(consume_from_where=ConsumeFromWhere.FIRST_OFFSET)
        consumer = PushConsumer(namesrv, group=group, topics={topic: "*"}, options=options)
        consumer.start()
        next(iter(consumer)).ack()
        """
    topic = cluster.topic()
    assert program(text, cluster.namesrv, group, topic).stderr == ""
    assert cluster.committed(group, topic) == 1


def test_a_listener_that_hangs_does_not_hang_the_end(cluster: ServedCluster, group: str) -> None:
    text = """
        import sys, threading
        from twisted_mq.blocking import *
        namesrv, group, topic = sys.argv[1:]
        called = threading.Event()
        def on_messages(messages, context):
            called.set()
            threading.Event().wait()
        options = ConsumerOptions(consume_from_where=ConsumeFromWhere.FIRST_OFFSET)
        with Producer(namesrv, group=group) as producer:
            producer.send(Message(topic, b"x"))
        consumer = PushConsumer(namesrv, group=group, topics={topic: "*"}, options=options, listener=on_messages)
        consumer.start()
        called.wait()
        consumer.stop(finish_seconds=0)
        """
    topic = cluster.topic()
    assert program(text, cluster.namesrv, group, topic).stderr == ""
    assert not cluster.committed(group, topic)


def test_ctrl_c_ends_a_call_that_waits(cluster: ServedCluster, group: str) -> None:
    text = """
        import os, signal, sys, threading
        from twisted_mq.blocking import *
        signal.signal(signal.SIGINT, signal.default_int_handler)
        namesrv, group, topic = sys.argv[1:]
        with PushConsumer(namesrv, group=group, topics={topic: "*"}) as consumer:
            threading.Timer(0.2, os.kill, [os.getpid(), signal.SIGINT]).start()
            try:
                for message in consumer:
                    pass
            except KeyboardInterrupt:
                print("interrupted")
        """
    assert program(text, cluster.namesrv, group, cluster.topic()).stdout == "interrupted\n"


def test_deferreds_in_a_plain_script_are_not_silently_lost(cluster: ServedCluster, group: str) -> None:
    text = """
        import sys
        from twisted.internet import reactor
        from twisted_mq.client import Message, Producer
        producer = Producer(reactor, sys.argv[2], sys.argv[1])
        producer.start()
        producer.send(Message(sys.argv[3], b"x"))
        """
    told = program(text, cluster.namesrv, group, cluster.topic()).stderr
    assert "Twisted's reactor never ran" in told and "twisted_mq.blocking" in told


def test_deferreds_in_an_asyncio_program_are_refused(cluster: ServedCluster, group: str) -> None:
    text = """
        import asyncio, sys
        from twisted.internet import reactor
        from twisted_mq.client import ClientStateError, Producer
        async def main():
            producer = Producer(reactor, sys.argv[2], sys.argv[1])
            try:
                await producer.start()
            except ClientStateError as error:
                print(error)
        asyncio.run(main())
        """
    assert "twisted_mq.aio" in program(text, cluster.namesrv, group).stdout


@pytest.mark.parametrize("face", ["aio", "blocking"])
def test_a_reactor_stays_the_programs_to_choose(face: str) -> None:
    text = f"""
        import sys
        import twisted_mq.{face}
        print("twisted.internet.reactor" in sys.modules, "kazoo" in sys.modules)
        from twisted.internet import asyncioreactor
        asyncioreactor.install()
        """
    assert program(text).stdout == "False False\n"
