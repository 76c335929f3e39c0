import com.alibaba.fastjson.JSONArray;
import com.alibaba.fastjson.JSONObject;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendCallback;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageQueue;

/** Sends in every form the client has. */
final class Producers {
    private static final Map<String, DefaultMQProducer> PRODUCERS = new ConcurrentHashMap<>();
    /** What a send may take where a test says nothing; a busy machine may need more than the three seconds of the default. */
    static final int PATIENCE_MS = 15_000;

    private Producers() {
    }

    static void register(Map<String, Peer.Command> commands) {
        commands.put("producer", Producers::start);
        commands.put("send", arguments -> describe(of(arguments).send(message(arguments))));
        commands.put("send_all", Producers::sendAll);
        commands.put("send_async", Producers::sendAsync);
        commands.put("send_one_way", Producers::sendOneWay);
        commands.put("send_batch", arguments -> describe(of(arguments).send(messages(arguments))));
        commands.put("send_ordered", Producers::sendOrdered);
        commands.put("send_to_queue", Producers::sendToQueue);
        commands.put("load", Load::run);
        commands.put("recall", arguments -> of(arguments).recallMessage(arguments.getString("topic"), arguments.getString("handle")));
    }

    /** Arguments: name, name_server, group; timeout_ms; large_bodies lifts the client's own size check; auto_batch. */
    private static Object start(JSONObject arguments) throws Exception {
        String name = arguments.getString("name");
        DefaultMQProducer producer = new DefaultMQProducer(arguments.getString("group"), Credentials.of(arguments));
        producer.setNamesrvAddr(arguments.getString("name_server"));
        producer.setInstanceName(name);
        Settings.apply(producer, arguments);
        producer.setRetryTimesWhenSendFailed(arguments.getIntValue("retries"));
        producer.setVipChannelEnabled(arguments.getBooleanValue("vip_channel"));
        producer.setAutoBatch(arguments.getBooleanValue("auto_batch"));
        producer.setSendMsgTimeout(arguments.containsKey("timeout_ms") ? arguments.getIntValue("timeout_ms") : PATIENCE_MS);
        if (arguments.getBooleanValue("large_bodies")) {
            producer.setMaxMessageSize(Integer.MAX_VALUE);
            producer.setCompressMsgBodyOverHowmuch(Integer.MAX_VALUE);
        }
        producer.start();
        PRODUCERS.put(name, producer);
        Peer.STARTED.put(name, () -> {
            PRODUCERS.remove(name);
            producer.shutdown();
        });
        return name;
    }

    static DefaultMQProducer of(JSONObject arguments) {
        return PRODUCERS.get(arguments.getString("producer"));
    }

    /** Members: topic, body, and optionally tags, keys, delay_level, delay_seconds, delay_ms, deliver_ms, properties. */
    static Message message(JSONObject from) {
        Message message = new Message(from.getString("topic"), from.getString("body").getBytes(StandardCharsets.UTF_8));
        if (from.containsKey("tags")) {
            message.setTags(from.getString("tags"));
        }
        if (from.containsKey("keys")) {
            message.setKeys(from.getString("keys"));
        }
        if (from.containsKey("delay_level")) {
            message.setDelayTimeLevel(from.getIntValue("delay_level"));
        }
        if (from.containsKey("delay_seconds")) {
            message.setDelayTimeSec(from.getLongValue("delay_seconds"));
        }
        if (from.containsKey("delay_ms")) {
            message.setDelayTimeMs(from.getLongValue("delay_ms"));
        }
        if (from.containsKey("deliver_ms")) {
            message.setDeliverTimeMs(from.getLongValue("deliver_ms"));
        }
        if (from.containsKey("properties")) {
            from.getJSONObject("properties").forEach((key, value) -> message.putUserProperty(key, (String) value));
        }
        return message;
    }

    private static List<Message> messages(JSONObject arguments) {
        JSONArray items = arguments.getJSONArray("messages");
        List<Message> messages = new ArrayList<>();
        for (int i = 0; i < items.size(); i++) {
            messages.add(message(items.getJSONObject(i)));
        }
        return messages;
    }

    /** One after the other from one thread, so that they go round the queues: the client's choice of queue is per thread. */
    private static Object sendAll(JSONObject arguments) throws Exception {
        List<Object> results = new ArrayList<>();
        for (Message message : messages(arguments)) {
            results.add(describe(of(arguments).send(message)));
        }
        return results;
    }

    /** All of "messages" at once in flight; answers with their results in the order given. */
    private static Object sendAsync(JSONObject arguments) throws Exception {
        List<CompletableFuture<Object>> pending = new ArrayList<>();
        for (Message message : messages(arguments)) {
            CompletableFuture<Object> result = new CompletableFuture<>();
            of(arguments).send(message, callback(result));
            pending.add(result);
        }
        List<Object> results = new ArrayList<>();
        for (CompletableFuture<Object> result : pending) {
            results.add(result.get(20, TimeUnit.SECONDS));
        }
        return results;
    }

    private static SendCallback callback(CompletableFuture<Object> result) {
        return new SendCallback() {
            @Override
            public void onSuccess(SendResult sent) {
                result.complete(describe(sent));
            }

            @Override
            public void onException(Throwable failure) {
                result.complete(Peer.describe(failure));
            }
        };
    }

    private static Object sendOneWay(JSONObject arguments) throws Exception {
        for (Message message : messages(arguments)) {
            of(arguments).sendOneway(message);
        }
        return null;
    }

    /** The queue is chosen by order_key, a number. */
    private static Object sendOrdered(JSONObject arguments) throws Exception {
        int key = arguments.getIntValue("order_key");
        return describe(of(arguments).send(message(arguments), (queues, message, arg) -> queues.get((Integer) arg % queues.size()), key));
    }

    private static Object sendToQueue(JSONObject arguments) throws Exception {
        MessageQueue queue = new MessageQueue(
            arguments.getString("topic"), arguments.getString("broker_name"), arguments.getIntValue("queue_id"));
        return describe(of(arguments).send(message(arguments), queue));
    }

    static Map<String, Object> describe(SendResult sent) {
        Map<String, Object> result = new LinkedHashMap<>();
        result.put("status", sent.getSendStatus().name());
        result.put("msg_ids", Arrays.asList(sent.getMsgId().split(",")));
        result.put("offset_msg_ids", Arrays.asList(sent.getOffsetMsgId().split(",")));
        result.put("broker_name", sent.getMessageQueue().getBrokerName());
        result.put("queue_id", sent.getMessageQueue().getQueueId());
        result.put("queue_offset", sent.getQueueOffset());
        result.put("region", sent.getRegionId());
        result.put("recall_handle", sent.getRecallHandle());
        return result;
    }
}
