import com.alibaba.fastjson.JSONObject;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicBoolean;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.client.producer.SendStatus;
import org.apache.rocketmq.common.message.Message;

/** Numbers of several keys, each key's one after the other to the queue that a selector gives it, sent until they are taken. */
final class Keys {
    private static final int PAUSE_MS = 100;
    private static final Map<String, AtomicBoolean> SENDING = new ConcurrentHashMap<>();
    private static final Map<String, List<Thread>> THREADS = new ConcurrentHashMap<>();

    private Keys() {
    }

    static void register(Map<String, Peer.Command> commands) {
        commands.put("send_keys", Keys::send);
        commands.put("finish_keys", Keys::finish);
    }

    /** Arguments: producer, topic, keys (how many), pause_ms after each message. Sends "KEY NUMBER" until finish_keys. */
    private static Object send(JSONObject arguments) {
        String name = arguments.getString("producer");
        DefaultMQProducer producer = Producers.of(arguments);
        AtomicBoolean sending = new AtomicBoolean(true);
        List<Thread> threads = new ArrayList<>();
        SENDING.put(name, sending);
        THREADS.put(name, threads);
        for (int key = 0; key < arguments.getIntValue("keys"); key++) {
            int one = key;
            Thread thread = new Thread(() -> sendKey(producer, arguments, one, sending));
            threads.add(thread);
            thread.start();
        }
        return true;
    }

    private static void sendKey(DefaultMQProducer producer, JSONObject arguments, int key, AtomicBoolean sending) {
        String name = arguments.getString("producer");
        String topic = arguments.getString("topic");
        try {
            for (int number = 0; sending.get(); number++) {
                byte[] body = ("key" + key + " " + number).getBytes(StandardCharsets.UTF_8);
                while (!taken(producer, name, new Message(topic, body), key)) {
                    Thread.sleep(PAUSE_MS);
                }
                Peer.event("sent", name, Map.of("key", "key" + key, "next", number + 1));
                Thread.sleep(arguments.getLongValue("pause_ms"));
            }
        } catch (InterruptedException end) {
            Thread.currentThread().interrupt();
        }
    }

    private static boolean taken(DefaultMQProducer producer, String name, Message message, int key) throws InterruptedException {
        try {
            SendResult sent = producer.send(message, (queues, one, chosen) -> queues.get((Integer) chosen % queues.size()), key);
            return sent.getSendStatus() == SendStatus.SEND_OK;
        } catch (InterruptedException end) {
            throw end;
        } catch (Exception refused) {
            Peer.event("not_taken", name, Peer.describe(refused));
            return false;
        }
    }

    /** Arguments: producer. Answers once all that was begun is taken. */
    private static Object finish(JSONObject arguments) throws Exception {
        String name = arguments.getString("producer");
        SENDING.remove(name).set(false);
        for (Thread thread : THREADS.remove(name)) {
            thread.join();
        }
        return true;
    }
}
