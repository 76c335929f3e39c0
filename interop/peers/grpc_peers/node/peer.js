// Apache's gRPC client for Node behind JSON lines; one process serves all scenarios of a test module.
// Arguments: the proxy's address, "tls" or "plain". The lines are those of scenarios.py.
'use strict';

const readline = require('node:readline');
const rocketmq = require('rocketmq-client-nodejs');
const { TransactionResolution, FilterType } = require('rocketmq-client-nodejs/proto/apache/rocketmq/v2/definition_pb');

const [ address, security ] = process.argv.slice(2);
const log = (...words) => console.error(new Date().toISOString(), ...words);
const logger = { info: log, warn: log, error: log, debug() {} };
const connection = { endpoints: address, namespace: '', sslEnabled: security === 'tls', logger };
const started = new Map();
const received = new Map();
const seen = new Map(); // how often a push consumer was given a message
let keys = 0;

const write = value => process.stdout.write(JSON.stringify(value) + '\n');

function record(view) {
  const key = String(++keys);
  received.set(key, view);
  return {
    message: key,
    message_id: view.messageId,
    topic: view.topic,
    body: view.body.toString('utf8'),
    tag: view.tag ?? null,
    keys: view.keys,
    message_group: view.messageGroup ?? null,
    deliver_at_ms: view.deliveryTimestamp?.getTime() ?? null,
    properties: Object.fromEntries(view.properties),
    born_host: view.bornHost,
    born_ms: view.bornTimestamp?.getTime() ?? null,
    attempt: view.deliveryAttempt,
    at_ms: Date.now(),
  };
}

function message(request) {
  return {
    topic: request.topic,
    body: Buffer.from(request.body, 'utf8'),
    tag: request.tag,
    keys: request.keys ?? [],
    messageGroup: request.message_group,
    deliveryTimestamp: request.deliver_at_ms === undefined ? undefined : new Date(request.deliver_at_ms),
    properties: new Map(Object.entries(request.properties ?? {})),
  };
}

const receipt = sent => ({ message_id: sent.messageId, recall_handle: sent.recallHandle || null });

function subscription(request) {
  const expression = request.sql === undefined
    ? new rocketmq.FilterExpression(request.tags)
    : new rocketmq.FilterExpression(request.sql, FilterType.SQL);
  return new Map([[ request.topic, expression ]]);
}

async function keep(name, client) {
  await client.startup();
  started.set(name, client);
  return name;
}

const DECISIONS = {
  commit: TransactionResolution.COMMIT,
  rollback: TransactionResolution.ROLLBACK,
};

const COMMANDS = {
  producer: request => keep(request.name, new rocketmq.Producer({
    ...connection,
    topics: [ request.topic ],
    checker: {
      async check(view) {
        write({ event: 'check', consumer: request.name, message: record(view) });
        return DECISIONS[view.properties.get('check')] ?? TransactionResolution.TRANSACTION_RESOLUTION_UNSPECIFIED;
      },
    },
  })),
  simple_consumer: request => keep(request.name, new rocketmq.SimpleConsumer({
    ...connection,
    consumerGroup: request.group,
    subscriptions: subscription(request),
    awaitDuration: request.await_ms,
  })),
  push_consumer: request => keep(request.name, new rocketmq.PushConsumer({
    ...connection,
    consumerGroup: request.group,
    subscriptions: subscription(request),
    messageListener: {
      consume(view) {
        const key = request.name + view.messageId;
        seen.set(key, (seen.get(key) ?? 0) + 1);
        const fails = seen.get(key) <= Number(view.properties.get('failures') ?? 0);
        write({ event: fails ? 'refused' : 'message', consumer: request.name, message: record(view) });
        return fails ? rocketmq.ConsumeResult.FAILURE : rocketmq.ConsumeResult.SUCCESS;
      },
    },
  })),
  send: async request => receipt(await started.get(request.producer).send(message(request))),
  async send_in_transaction(request) {
    const producer = started.get(request.producer);
    const transaction = producer.beginTransaction();
    const sent = await producer.send(message(request), transaction);
    if (request.properties.local === 'commit') await transaction.commit();
    if (request.properties.local === 'rollback') await transaction.rollback();
    return receipt(sent);
  },
  recall: async request => (await started.get(request.producer).recallMessage(request.topic, request.handle)).messageId,
  receive: async request => (await started.get(request.consumer).receive(request.most, request.invisible_ms)).map(record),
  async ack(request) {
    await started.get(request.consumer).ack(received.get(request.message));
    received.delete(request.message);
    return null;
  },
  async change_invisible(request) {
    await started.get(request.consumer).changeInvisibleDuration(received.get(request.message), request.invisible_ms);
    return null;
  },
  async stop(request) {
    const client = started.get(request.name);
    started.delete(request.name);
    await client?.shutdown();
    return client !== undefined;
  },
};

async function answer(request) {
  try {
    write({ id: request.id, result: await COMMANDS[request.do](request) });
  } catch (failure) {
    log('failed', request.do, failure);
    write({ id: request.id, error: { type: failure.name, code: failure.code ?? -1, message: String(failure.message) } });
  }
}

const lines = readline.createInterface({ input: process.stdin });
lines.on('line', line => answer(JSON.parse(line)));
lines.on('close', () => process.exit(0));
