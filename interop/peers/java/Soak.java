import com.alibaba.fastjson.JSONObject;
import java.io.PrintWriter;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.BitSet;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.locks.LockSupport;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.client.producer.SendStatus;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;

/** A steady load: each key has a thread that sends at a fixed pace to one queue, numbered from 0; a consumer takes everything.
 *
 * Writes sent.txt, a line a send: ms when it was due, us from then to its end, key, number, status or error, queue id, queue offset;
 * and received.txt, a line a delivery: ms since its sender made it, key, number, queue id, queue offset. */
final class Soak {
    private static final Map<String, Soak> RUNNING = new ConcurrentHashMap<>();
    private static final int BODY_BYTES = 128;

    private final String topic;
    private final DefaultMQProducer producer;
    private final DefaultMQPushConsumer consumer;
    private final PrintWriter sent;
    private final PrintWriter received;
    private final BitSet[] acknowledged;
    private final BitSet[] taken;
    private final Thread[] threads;
    private final long periodNs;
    private volatile boolean ended;

    private Soak(JSONObject arguments) throws Exception {
        topic = arguments.getString("topic");
        int keys = arguments.getIntValue("keys");
        periodNs = keys * 1_000_000_000L / arguments.getIntValue("per_second");
        Path directory = Path.of(arguments.getString("directory"));
        sent = new PrintWriter(Files.newBufferedWriter(directory.resolve("sent.txt")));
        received = new PrintWriter(Files.newBufferedWriter(directory.resolve("received.txt")));
        acknowledged = new BitSet[keys];
        taken = new BitSet[keys];
        Arrays.setAll(acknowledged, key -> new BitSet());
        Arrays.setAll(taken, key -> new BitSet());
        producer = new DefaultMQProducer(arguments.getString("name") + "-producers");
        producer.setNamesrvAddr(arguments.getString("name_server"));
        producer.setInstanceName(arguments.getString("name") + "-producer");
        producer.setRetryTimesWhenSendFailed(0);
        consumer = new DefaultMQPushConsumer(arguments.getString("name") + "-consumers");
        consumer.setNamesrvAddr(arguments.getString("name_server"));
        consumer.setInstanceName(arguments.getString("name") + "-consumer");
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.subscribe(topic, "*");
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            messages.forEach(this::took);
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        Consumers.tellBrokers(consumer);
        threads = new Thread[keys];
        Arrays.setAll(threads, key -> new Thread(() -> sendAll(key), "soak-" + key));
    }

    static void register(Map<String, Peer.Command> commands) {
        commands.put("soak_start", Soak::start);
        commands.put("soak_end", arguments -> of(arguments).end());
        commands.put("soak_missing", arguments -> of(arguments).missing());
        commands.put("soak_close", arguments -> of(arguments).close());
    }

    /** Arguments: name, name_server, topic, keys, per_second (of all keys together), directory. */
    private static Object start(JSONObject arguments) throws Exception {
        Soak soak = new Soak(arguments);
        soak.consumer.start();
        soak.producer.start();
        RUNNING.put(arguments.getString("name"), soak);
        for (Thread thread : soak.threads) {
            thread.start();
        }
        return null;
    }

    private static Soak of(JSONObject arguments) {
        return RUNNING.get(arguments.getString("name"));
    }

    /** Ends the sending. */
    private Object end() throws InterruptedException {
        ended = true;
        for (Thread thread : threads) {
            thread.join();
        }
        return null;
    }

    /** How many acknowledged messages the consumer has not taken so far. */
    private Object missing() {
        synchronized (received) {
            int missing = 0;
            for (int key = 0; key < taken.length; key++) {
                BitSet left = (BitSet) acknowledged[key].clone();
                left.andNot(taken[key]);
                missing += left.cardinality();
            }
            return missing;
        }
    }

    private Object close() throws Exception {
        Hurry.through(() -> {
            consumer.shutdown();
            producer.shutdown();
            return true;
        });
        sent.close();
        received.close();
        return null;
    }

    /** A send that ends late is followed at once by those that were due meanwhile; after a failed one the pace begins anew. */
    private void sendAll(int key) {
        long due = System.nanoTime();
        for (int number = 0; !ended; number++) {
            LockSupport.parkNanos(Math.max(0, due - System.nanoTime()));
            long dueMs = System.currentTimeMillis() - (System.nanoTime() - due) / 1_000_000;
            String outcome = send(key, number);
            long now = System.nanoTime();
            synchronized (sent) {
                sent.println(dueMs + " " + (now - due) / 1_000 + " " + key + " " + number + " " + outcome);
            }
            due = outcome.startsWith("SEND_OK") ? due + periodNs : now + periodNs;
        }
    }

    private String send(int key, int number) {
        try {
            SendResult result = producer.send(message(key, number), (queues, message, chosen) -> queues.get(key % queues.size()), null);
            if (result.getSendStatus() == SendStatus.SEND_OK) {
                synchronized (received) {
                    acknowledged[key].set(number);
                }
            }
            return result.getSendStatus() + " " + result.getMessageQueue().getQueueId() + " " + result.getQueueOffset();
        } catch (Exception failure) {
            return failure.getClass().getSimpleName() + ":" + Peer.codeOf(failure) + " -1 -1";
        }
    }

    private void took(MessageExt message) {
        String[] words = new String(message.getBody(), StandardCharsets.US_ASCII).split(" ");
        long age = System.currentTimeMillis() - message.getBornTimestamp();
        synchronized (received) {
            taken[Integer.parseInt(words[0])].set(Integer.parseInt(words[1]));
            received.println(age + " " + words[0] + " " + words[1] + " " + message.getQueueId() + " " + message.getQueueOffset());
        }
    }

    private Message message(int key, int number) {
        StringBuilder body = new StringBuilder(key + " " + number + " ");
        while (body.length() < BODY_BYTES) {
            body.append('.');
        }
        return new Message(topic, "soak", key + "-" + number, body.toString().getBytes(StandardCharsets.US_ASCII));
    }
}
