import com.alibaba.fastjson.JSONArray;
import com.alibaba.fastjson.JSONObject;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.rocketmq.client.exception.MQBrokerException;
import org.apache.rocketmq.client.exception.MQClientException;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.common.message.Message;

/** Many messages of all kinds to several topics: most in batches, and single ones that are small, large or delayed. */
final class Load {
    private static final int BATCH = 32;
    private static final int TIMEOUT_MS = 60_000;
    private static final int BUSY = 2;

    private final DefaultMQProducer producer;
    private final JSONArray topics;
    private final AtomicInteger left;
    private final Map<String, AtomicInteger> statuses = new ConcurrentHashMap<>();

    private Load(JSONObject arguments) {
        producer = Producers.of(arguments);
        topics = arguments.getJSONArray("topics");
        left = new AtomicInteger(arguments.getIntValue("count"));
    }

    /** Arguments: producer, topics, count, seed, threads. Answers with the messages of each status; busy ones are sent again. */
    static Object run(JSONObject arguments) throws Exception {
        Load load = new Load(arguments);
        int threads = arguments.getIntValue("threads");
        ExecutorService workers = Executors.newFixedThreadPool(threads);
        try {
            List<Future<?>> running = new ArrayList<>();
            for (int i = 0; i < threads; i++) {
                Random random = new Random(arguments.getLongValue("seed") * 1000 + i);
                running.add(workers.submit(() -> {
                    load.send(random);
                    return null;
                }));
            }
            for (Future<?> one : running) {
                one.get();
            }
        } finally {
            workers.shutdownNow();
        }
        return load.statuses;
    }

    private void send(Random random) throws Exception {
        while (left.get() > 0) {
            List<Message> messages = messages(random);
            left.addAndGet(-messages.size());
            String status = send(messages);
            statuses.computeIfAbsent(status, key -> new AtomicInteger()).addAndGet(messages.size());
            if ("BUSY".equals(status)) {
                left.addAndGet(messages.size());
                Thread.sleep(10);
            }
        }
    }

    private String send(List<Message> messages) throws Exception {
        try {
            SendResult sent = messages.size() > 1 ? producer.send(messages, TIMEOUT_MS) : producer.send(messages.get(0), TIMEOUT_MS);
            return sent.getSendStatus().name();
        } catch (MQBrokerException | MQClientException refused) {
            if (Peer.codeOf(refused) != BUSY) {
                throw refused;
            }
            return "BUSY";
        }
    }

    private List<Message> messages(Random random) {
        String topic = topics.getString(random.nextInt(topics.size()));
        int kind = random.nextInt(60);
        List<Message> messages = new ArrayList<>();
        for (int i = 0; i < (kind < 10 ? 1 : BATCH); i++) {
            messages.add(message(random, topic, kind == 0 ? 20_000 + random.nextInt(80_000) : random.nextInt(300)));
        }
        if (kind == 1) {
            messages.get(0).setDelayTimeLevel(1);
        }
        return messages;
    }

    private static Message message(Random random, String topic, int length) {
        StringBuilder body = new StringBuilder(Long.toHexString(random.nextLong()));
        while (body.length() < length) {
            body.append((char) ('a' + random.nextInt(26)));
        }
        Message message = new Message(topic, body.toString().getBytes(StandardCharsets.UTF_8));
        message.setTags("Tag" + random.nextInt(3));
        message.setKeys("key" + random.nextInt(1000));
        return message;
    }
}
