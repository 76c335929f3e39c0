"""This project's client library behind the JSON lines of line_peer.py. Run as a process of its own."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Awaitable, Callable
from typing import Any

from twisted.internet import defer, reactor, stdio, task
from twisted.protocols.basic import LineOnlyReceiver

from twisted_mq.admin.errors import AdminError
from twisted_mq.cli import mqadmin
from twisted_mq.cli.admin.command_line import UsageError, parse_command_line
from twisted_mq.cli.admin.registry import find_sub_command
from twisted_mq.client import (
    AutoBatch,
    ClientOptions,
    ConsumeContext,
    ConsumeFromWhere,
    ConsumeOrderlyStatus,
    ConsumerOptions,
    ConsumeStatus,
    LitePullConsumer,
    Message,
    MessageModel,
    Producer,
    ProducerOptions,
    PushConsumer,
    RequestTimeout,
    SendLimits,
    SendResult,
    TransactionProducer,
    TransactionState,
    reply_message,
)
from twisted_mq.client.core.errors import ClientError
from twisted_mq.protocol.bodies import MessageQueue
from twisted_mq.protocol.errors import ProtocolError
from twisted_mq.protocol.messages.compression import CompressionType
from twisted_mq.protocol.messages.message import MessageExt
from twisted_mq.protocol.messages.subscription import SQL92
from twisted_mq.remoting.errors import RemotingError

Record = dict[str, Any]
MAX_LINE_BYTES = 4 * 1024 * 1024
SEND_SECONDS = 15.0
"""Timeout of a send; a busy machine may need more than the three seconds of the default."""


def made(fields: Record) -> Message:
    texts = {name: fields.get(name) for name in ("tags", "keys", "properties")}
    return Message(fields["topic"], fields["body"].encode(), delay_time_seconds=fields.get("delay_seconds"), **texts)


def queue_of(arguments: Record) -> MessageQueue:
    return MessageQueue(arguments["topic"], arguments["broker_name"], arguments["queue_id"])


def tracing(arguments: Record) -> Record:
    """Return options of a producer or consumer with a topic for its traces."""
    return {"message_trace": True, "trace_topic": arguments["trace"]} if "trace" in arguments else {}


def signing(arguments: Record) -> ClientOptions:
    """Return settings of a client with credentials, certificates, or short intervals."""
    return ClientOptions(
        access_key=arguments.get("access_key"),
        secret_key=arguments.get("secret_key"),
        tls_enable="tls_trust" in arguments,
        tls_trust_cert_path=arguments.get("tls_trust"),
        tls_cert_path=arguments.get("tls_cert"),
        tls_key_path=arguments.get("tls_key"),
        heartbeat_v2=arguments.get("heartbeat_v2", False),
        heartbeat_seconds=0.3 if "heartbeat_v2" in arguments else 30,
    )


def decided(word: str | None) -> TransactionState:
    return TransactionState[word.upper()] if word else TransactionState.UNKNOWN


def sent(result: SendResult) -> Record:
    return {
        "status": result.status.name,
        "msg_ids": result.msg_id.split(","),
        "offset_msg_ids": result.offset_msg_id.split(","),
        "broker_name": result.queue.broker_name,
        "queue_id": result.queue.queue_id,
        "queue_offset": result.queue_offset,
        "recall_handle": result.recall_handle,
    }


def describe(message: MessageExt) -> Record:
    return {
        "topic": message.topic,
        "queue_id": message.queue_id,
        "queue_offset": message.queue_offset,
        "msg_id": message.unique_key,
        "offset_msg_id": message.msg_id,
        "tags": message.tags,
        "keys": " ".join(message.keys),
        "body": message.body.decode(),
        "properties": message.properties,
        "reconsume_times": message.reconsume_times,
        "store_size": message.store_size,
        "born_timestamp": message.born_timestamp,
        "store_timestamp": message.store_timestamp,
        "received_at_ms": int(reactor.seconds() * 1000),
    }


class Program(LineOnlyReceiver):
    """Program whose commands are lines of standard input; an answer is written when its Deferred fires."""

    delimiter = b"\n"
    MAX_LENGTH = MAX_LINE_BYTES

    def __init__(self, finished: defer.Deferred[None]) -> None:
        self._finished = finished
        self._clients: dict[str, Any] = {}

    def lineReceived(self, line: bytes) -> None:
        defer.Deferred.fromCoroutine(self._answer(json.loads(line)))

    def connectionLost(self, reason: Any = None) -> None:
        self._finished.callback(None)

    async def stop_all(self) -> None:
        for client in self._clients.values():
            await client.stop()

    async def _answer(self, request: Record) -> None:
        command: Callable[[Record], Awaitable[Any]] = getattr(self, f"do_{request['do']}")
        try:
            self._write({"id": request["id"], "result": await command(request)})
        except Exception as failure:
            code = int(getattr(failure, "response_code", -1))
            error = {"type": type(failure).__name__, "code": code, "message": str(failure)}
            self._write({"id": request["id"], "error": error})

    def _write(self, record: Record) -> None:
        self.sendLine(json.dumps(record).encode())

    async def do_producer(self, arguments: Record) -> str:
        limits = SendLimits(compress_type=CompressionType[arguments.get("compress", "ZLIB")])
        gathering = AutoBatch() if arguments.get("auto_batch") else None
        options = ProducerOptions(
            send_timeout_seconds=SEND_SECONDS, batch_unique_key=arguments.get("batch_unique_key", False),
            limits=limits, auto_batch=gathering, **tracing(arguments),
        )  # fmt: skip
        producer = Producer(
            reactor, arguments["group"], arguments["name_server"], options=options,
            namespace=arguments.get("namespace", ""), client_options=signing(arguments),
        )  # fmt: skip
        return await self._start(arguments, producer)

    async def do_transaction_producer(self, arguments: Record) -> str:
        name = arguments["name"]
        producer = TransactionProducer(
            reactor, arguments["group"], arguments["name_server"], check=lambda message: self._checked(name, message),
            options=ProducerOptions(send_timeout_seconds=SEND_SECONDS),
        )  # fmt: skip
        return await self._start(arguments, producer)

    def _checked(self, name: str, message: MessageExt) -> TransactionState:
        self._write({"event": "check", "consumer": name, "message": describe(message)})
        return decided(message.properties.get("check"))

    async def do_request(self, arguments: Record) -> Record:
        """The reply, or the error as the Java peer describes it."""
        producer = self._clients[arguments["producer"]]
        try:
            return describe(await producer.request(made(arguments), timeout_seconds=arguments["timeout_ms"] / 1000))
        except RequestTimeout as error:
            return {"type": "RequestTimeoutException", "code": -1, "message": str(error)}

    async def do_answering_consumer(self, arguments: Record) -> str:
        name, name_server = arguments["name"], arguments["name_server"]
        replies = Producer(reactor, f"{arguments['group']}_replies", name_server)
        await replies.start()
        self._clients[f"{name}_replies"] = replies

        async def answer(messages: list[MessageExt], context: ConsumeContext) -> ConsumeStatus:
            for message in messages:
                result = await replies.send(reply_message(message, b"reply to " + message.body))
                self._write({"event": "reply", "consumer": name, "message": sent(result)})
            return ConsumeStatus.CONSUME_SUCCESS

        options = ConsumerOptions(consume_from_where=ConsumeFromWhere.FIRST_OFFSET)
        consumer = PushConsumer(reactor, arguments["group"], name_server, options=options, instance_name=name)
        consumer.subscribe(arguments["topic"])
        consumer.listen(answer)
        return await self._start(arguments, consumer)

    async def do_send_in_transaction(self, arguments: Record) -> Record:
        producer, local = self._clients[arguments["producer"]], arguments["properties"].get("local")
        result = await producer.send_in_transaction(made(arguments), lambda message: decided(local))
        return {"status": result.sent.status.name, "msg_id": result.sent.msg_id, "local_state": result.state.name}

    async def do_push_consumer(self, arguments: Record) -> str:
        name = arguments["name"]
        model = MessageModel.BROADCASTING if arguments.get("broadcast") else MessageModel.CLUSTERING
        options = ConsumerOptions(
            message_model=model, consume_from_where=ConsumeFromWhere.FIRST_OFFSET, **tracing(arguments)
        )
        group, name_server = arguments["group"], arguments["name_server"]
        consumer = PushConsumer(
            reactor, group, name_server, options=options, instance_name=name, namespace=arguments.get("namespace", ""),
            client_options=signing(arguments),
        )  # fmt: skip
        if "sql" in arguments:
            consumer.subscribe(arguments["topic"], arguments["sql"], SQL92)
        else:
            consumer.subscribe(arguments["topic"], arguments["tags"])
        refuse = [arguments.get("refuse", 0)]
        if arguments.get("orderly"):
            consumer.listen_orderly(lambda messages, context: self._consumed_in_order(name, messages, refuse))
        else:
            consumer.listen(lambda messages, context: self._consumed(name, messages))
        return await self._start(arguments, consumer)

    async def do_pop_consumer(self, arguments: Record) -> str:
        """As Apache's in Pops.java: "refuse..." is refused at first, "hold..." is kept for longer than it is invisible."""
        name, seconds = arguments["name"], arguments["invisible_ms"] / 1000
        options = ConsumerOptions(
            consume_from_where=ConsumeFromWhere.FIRST_OFFSET, client_rebalance=False, pop_invisible_seconds=seconds
        )
        consumer = PushConsumer(
            reactor, arguments["group"], arguments["name_server"], options=options, instance_name=name
        )
        consumer.subscribe(arguments["topic"], arguments["tags"])

        async def listen(messages: list[MessageExt], context: ConsumeContext) -> ConsumeStatus:
            (message,) = messages
            first, body = message.reconsume_times == 0, message.body
            if first and body.startswith(b"refuse"):
                self._write({"event": "refused", "consumer": name, "message": describe(message)})
                return ConsumeStatus.RECONSUME_LATER
            held = first and body.startswith(b"hold")
            self._write({"event": "held" if held else "message", "consumer": name, "message": describe(message)})
            if held:
                await task.deferLater(reactor, 4 * seconds)  # an answer soon after the time would still count
            return ConsumeStatus.CONSUME_SUCCESS

        consumer.listen(listen)
        return await self._start(arguments, consumer)

    async def do_popped_queues(self, arguments: Record) -> list[int]:
        queues = self._clients[arguments["consumer"]].queues
        return [queue.queue_id for queue in queues if not queue.topic.startswith("%RETRY%")]

    async def do_lite_pull_consumer(self, arguments: Record) -> str:
        options = ConsumerOptions(consume_from_where=ConsumeFromWhere.FIRST_OFFSET)
        consumer = LitePullConsumer(
            reactor, arguments["group"], arguments["name_server"], options=options, instance_name=arguments["name"],
            auto_commit=arguments.get("auto_commit", False),
        )  # fmt: skip
        if "queue_ids" in arguments:
            topic, broker_name = arguments["topic"], arguments["broker_name"]
            consumer.assign([MessageQueue(topic, broker_name, one) for one in arguments["queue_ids"]])
        else:
            consumer.subscribe(arguments["topic"], arguments["tags"])
        return await self._start(arguments, consumer)

    async def do_poll(self, arguments: Record) -> list[Record]:
        messages = await self._clients[arguments["consumer"]].poll(arguments["timeout_ms"] / 1000)
        return [describe(message) for message in messages]

    async def do_commit(self, arguments: Record) -> bool:
        await self._clients[arguments["consumer"]].commit()
        return True

    async def do_seek(self, arguments: Record) -> bool:
        self._clients[arguments["consumer"]].seek(queue_of(arguments), arguments["offset"])
        return True

    async def do_seek_to_begin(self, arguments: Record) -> bool:
        await self._clients[arguments["consumer"]].seek_to_begin(queue_of(arguments))
        return True

    async def do_seek_to_end(self, arguments: Record) -> bool:
        await self._clients[arguments["consumer"]].seek_to_end(queue_of(arguments))
        return True

    async def do_lite_offsets(self, arguments: Record) -> Record:
        consumer, queue = self._clients[arguments["consumer"]], queue_of(arguments)
        at_time = await consumer.offset_for_time(queue, arguments.get("timestamp_ms", 1e12) / 1000)
        return {"committed": await consumer.committed(queue), "at_time": at_time}

    async def _start(self, arguments: Record, client: Producer | PushConsumer) -> str:
        await client.start()
        self._clients[arguments["name"]] = client
        return arguments["name"]

    def _consumed(self, name: str, messages: list[MessageExt]) -> ConsumeStatus:
        for message in messages:
            self._write({"event": "message", "consumer": name, "message": describe(message)})
        return ConsumeStatus.CONSUME_SUCCESS

    def _consumed_in_order(self, name: str, messages: list[MessageExt], refuse: list[int]) -> ConsumeOrderlyStatus:
        """Refuses as many first calls as `refuse` says."""
        refuse[0] -= 1
        kind = "refused" if refuse[0] >= 0 else "message"
        for message in messages:
            self._write({"event": kind, "consumer": name, "message": describe(message)})
        suspend = ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT
        return suspend if kind == "refused" else ConsumeOrderlyStatus.SUCCESS

    async def do_send(self, arguments: Record) -> Record:
        return sent(await self._clients[arguments["producer"]].send(made(arguments)))

    async def do_send_all(self, arguments: Record) -> list[Record]:
        producer = self._clients[arguments["producer"]]
        return [sent(await producer.send(made(fields))) for fields in arguments["messages"]]

    async def do_send_async(self, arguments: Record) -> list[Record]:
        producer = self._clients[arguments["producer"]]
        pending = [producer.send(made(fields)) for fields in arguments["messages"]]
        return [sent(await result) for result in pending]

    async def do_send_one_way(self, arguments: Record) -> None:
        for fields in arguments["messages"]:
            await self._clients[arguments["producer"]].send_one_way(made(fields))

    async def do_recall(self, arguments: Record) -> str:
        return await self._clients[arguments["producer"]].recall(arguments["topic"], arguments["handle"])

    async def do_send_batch(self, arguments: Record) -> Record:
        messages = [made(fields) for fields in arguments["messages"]]
        return sent(await self._clients[arguments["producer"]].send_batch(messages))

    async def do_send_to_queue(self, arguments: Record) -> Record:
        return sent(await self._clients[arguments["producer"]].send(made(arguments), queue_of(arguments)))

    async def do_send_ordered(self, arguments: Record) -> Record:
        """To the queue at the index of order_key, as the Java peer chooses."""
        producer = self._clients[arguments["producer"]]
        return sent(
            await producer.send_by_key(
                made(arguments), arguments["order_key"], lambda queues, message, key: queues[key % len(queues)]
            )
        )

    async def do_lite_assigned(self, arguments: Record) -> list[int]:
        return await self.do_assigned(arguments)

    async def do_assigned(self, arguments: Record) -> list[int]:
        queues = self._clients[arguments["consumer"]].queues
        return [queue.queue_id for queue in queues if queue.topic == arguments["topic"]]

    async def do_mqadmin(self, arguments: Record) -> Record:
        """Run a command line of the admin tool in `directory`, which is also its home: return its output, and the reason of a
        failure."""
        os.chdir(arguments["directory"])
        os.environ["ROCKETMQ_HOME"] = arguments["directory"]
        name, *words = arguments["args"]
        out: list[str] = []
        errors: list[str] = []
        try:
            command = find_sub_command(name)
            assert command is not None
            line = parse_command_line(command.all_options, words)
            work = mqadmin.execute(reactor, command, line, mqadmin.name_servers(line), out.append, errors.append)
            await defer.Deferred.fromCoroutine(work).addTimeout(arguments["most_seconds"], reactor, _ended)
        except (AdminError, UsageError, ClientError, ProtocolError, RemotingError) as error:
            errors.append(str(error))
        return {"out": "\n".join(out), "err": "\n".join(errors)}

    async def do_stop(self, arguments: Record) -> bool:
        client = self._clients.pop(arguments["name"], None)
        if client is not None:
            await client.stop()
        return client is not None


def _ended(result: object, seconds: float) -> None:
    """A command without end was interrupted."""


async def main(reactor: Any) -> None:
    finished: defer.Deferred[None] = defer.Deferred()
    program = Program(finished)
    stdio.StandardIO(program)
    await finished
    await program.stop_all()


if __name__ == "__main__":
    task.react(lambda reactor: defer.Deferred.fromCoroutine(main(reactor)), argv=sys.argv[1:])
