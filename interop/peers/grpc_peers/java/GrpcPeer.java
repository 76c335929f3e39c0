import com.alibaba.fastjson.JSON;
import com.alibaba.fastjson.JSONObject;
import com.alibaba.fastjson.serializer.SerializerFeature;
import java.io.BufferedReader;
import java.io.Closeable;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.Method;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.rocketmq.client.apis.ClientConfiguration;
import org.apache.rocketmq.client.apis.ClientException;
import org.apache.rocketmq.client.apis.ClientServiceProvider;
import org.apache.rocketmq.client.apis.consumer.ConsumeResult;
import org.apache.rocketmq.client.apis.consumer.FilterExpression;
import org.apache.rocketmq.client.apis.consumer.FilterExpressionType;
import org.apache.rocketmq.client.apis.consumer.SimpleConsumer;
import org.apache.rocketmq.client.apis.message.Message;
import org.apache.rocketmq.client.apis.message.MessageBuilder;
import org.apache.rocketmq.client.apis.message.MessageView;
import org.apache.rocketmq.client.apis.producer.Producer;
import org.apache.rocketmq.client.apis.producer.SendReceipt;
import org.apache.rocketmq.client.apis.producer.Transaction;
import org.apache.rocketmq.client.apis.producer.TransactionResolution;

/**
 * Apache's gRPC client for Java behind JSON lines; one process serves all scenarios of a test module.
 *
 * Arguments: the proxy's address, "tls" or "plain". The lines are those of scenarios.py. Compiles with 5.0.7 and newer:
 * recall, which came later, is called by its name.
 */
public final class GrpcPeer {
    private static final ClientServiceProvider PROVIDER = ClientServiceProvider.loadService();
    private static final PrintStream OUT = System.out;
    private static final Map<String, Closeable> STARTED = new ConcurrentHashMap<>();
    private static final Map<String, MessageView> RECEIVED = new ConcurrentHashMap<>();
    /** How often a push consumer was given a message: not every client counts attempts that it makes by itself. */
    private static final Map<String, Integer> SEEN = new ConcurrentHashMap<>();
    private static final AtomicLong KEYS = new AtomicLong();
    private static ClientConfiguration configuration;

    private GrpcPeer() {
    }

    public static void main(String[] args) throws Exception {
        System.setOut(System.err);
        configuration = ClientConfiguration.newBuilder().setEndpoints(args[0]).enableSsl(args[1].equals("tls")).build();
        ExecutorService workers = Executors.newCachedThreadPool();
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            JSONObject request = JSON.parseObject(line);
            workers.execute(() -> answer(request));
        }
        Runtime.getRuntime().halt(0);
    }

    private static void answer(JSONObject request) {
        Map<String, Object> reply = new LinkedHashMap<>();
        reply.put("id", request.get("id"));
        try {
            reply.put("result", run(request.getString("do"), request));
        } catch (Throwable failure) {
            Map<String, Object> error = new LinkedHashMap<>();
            error.put("type", failure.getClass().getSimpleName());
            error.put("code", -1);
            error.put("message", String.valueOf(failure.getMessage()));
            reply.put("error", error);
        }
        write(reply);
    }

    private static Object run(String command, JSONObject request) throws Exception {
        switch (command) {
            case "producer": return producer(request);
            case "simple_consumer": return simpleConsumer(request);
            case "push_consumer": return pushConsumer(request);
            case "send": return receipt(started(request, "producer", Producer.class).send(message(request)));
            case "send_in_transaction": return sendInTransaction(request);
            case "recall": return recall(request);
            case "receive": return receive(request);
            case "ack": return ack(request);
            case "change_invisible": return changeInvisible(request);
            case "stop": return stop(request);
            default: throw new IllegalArgumentException("no such command: " + command);
        }
    }

    private static Object producer(JSONObject request) throws ClientException {
        String name = request.getString("name");
        return keep(request, PROVIDER.newProducerBuilder().setClientConfiguration(configuration)
            .setTopics(request.getString("topic"))
            .setTransactionChecker(view -> check(name, view)).build());
    }

    private static TransactionResolution check(String name, MessageView view) {
        event("check", name, view);
        String decision = view.getProperties().getOrDefault("check", "");
        return decision.equals("commit") ? TransactionResolution.COMMIT
            : decision.equals("rollback") ? TransactionResolution.ROLLBACK : TransactionResolution.UNKNOWN;
    }

    private static Object simpleConsumer(JSONObject request) throws ClientException {
        return keep(request, PROVIDER.newSimpleConsumerBuilder().setClientConfiguration(configuration)
            .setConsumerGroup(request.getString("group"))
            .setAwaitDuration(Duration.ofMillis(request.getLongValue("await_ms")))
            .setSubscriptionExpressions(subscription(request)).build());
    }

    private static Object pushConsumer(JSONObject request) throws ClientException {
        String name = request.getString("name");
        return keep(request, PROVIDER.newPushConsumerBuilder().setClientConfiguration(configuration)
            .setConsumerGroup(request.getString("group"))
            .setSubscriptionExpressions(subscription(request))
            .setMessageListener(view -> consume(name, view)).build());
    }

    private static ConsumeResult consume(String name, MessageView view) {
        int seen = SEEN.merge(name + view.getMessageId(), 1, Integer::sum);
        boolean fails = seen <= Integer.parseInt(view.getProperties().getOrDefault("failures", "0"));
        event(fails ? "refused" : "message", name, view);
        return fails ? ConsumeResult.FAILURE : ConsumeResult.SUCCESS;
    }

    private static Map<String, FilterExpression> subscription(JSONObject request) {
        FilterExpression expression = request.containsKey("sql")
            ? new FilterExpression(request.getString("sql"), FilterExpressionType.SQL92)
            : new FilterExpression(request.getString("tags"), FilterExpressionType.TAG);
        return Collections.singletonMap(request.getString("topic"), expression);
    }

    private static Message message(JSONObject request) {
        MessageBuilder builder = PROVIDER.newMessageBuilder().setTopic(request.getString("topic"))
            .setBody(request.getString("body").getBytes(StandardCharsets.UTF_8));
        if (request.containsKey("tag")) {
            builder.setTag(request.getString("tag"));
        }
        if (request.containsKey("keys")) {
            builder.setKeys(request.getJSONArray("keys").toArray(new String[0]));
        }
        if (request.containsKey("message_group")) {
            builder.setMessageGroup(request.getString("message_group"));
        }
        if (request.containsKey("deliver_at_ms")) {
            builder.setDeliveryTimestamp(request.getLongValue("deliver_at_ms"));
        }
        if (request.containsKey("properties")) {
            request.getJSONObject("properties").forEach((key, value) -> builder.addProperty(key, (String) value));
        }
        return builder.build();
    }

    private static Object sendInTransaction(JSONObject request) throws ClientException {
        Producer producer = started(request, "producer", Producer.class);
        Transaction transaction = producer.beginTransaction();
        SendReceipt receipt = producer.send(message(request), transaction);
        switch (request.getJSONObject("properties").getOrDefault("local", "").toString()) {
            case "commit": transaction.commit(); break;
            case "rollback": transaction.rollback(); break;
            default: break;
        }
        return receipt(receipt);
    }

    private static Map<String, Object> receipt(SendReceipt receipt) {
        Map<String, Object> result = new LinkedHashMap<>();
        result.put("message_id", receipt.getMessageId().toString());
        try {
            result.put("recall_handle", SendReceipt.class.getMethod("getRecallHandle").invoke(receipt));
        } catch (ReflectiveOperationException older) {
            result.put("recall_handle", null);
        }
        return result;
    }

    private static Object recall(JSONObject request) throws Exception {
        Method recall = Producer.class.getMethod("recallMessage", String.class, String.class);
        Object receipt = recall.invoke(
            started(request, "producer", Producer.class), request.getString("topic"), request.getString("handle"));
        return Class.forName("org.apache.rocketmq.client.apis.producer.RecallReceipt")
            .getMethod("getMessageId").invoke(receipt).toString();
    }

    private static Object receive(JSONObject request) throws ClientException {
        List<Object> records = new ArrayList<>();
        for (MessageView view : started(request, "consumer", SimpleConsumer.class)
            .receive(request.getIntValue("most"), Duration.ofMillis(request.getLongValue("invisible_ms")))) {
            records.add(record(view));
        }
        return records;
    }

    private static Object ack(JSONObject request) throws ClientException {
        started(request, "consumer", SimpleConsumer.class).ack(RECEIVED.remove(request.getString("message")));
        return null;
    }

    private static Object changeInvisible(JSONObject request) throws ClientException {
        started(request, "consumer", SimpleConsumer.class).changeInvisibleDuration(
            RECEIVED.get(request.getString("message")), Duration.ofMillis(request.getLongValue("invisible_ms")));
        return null;
    }

    private static Object stop(JSONObject request) throws Exception {
        Closeable client = STARTED.remove(request.getString("name"));
        if (client != null) {
            client.close();
        }
        return client != null;
    }

    private static Object keep(JSONObject request, Closeable client) {
        STARTED.put(request.getString("name"), client);
        return request.getString("name");
    }

    private static <T> T started(JSONObject request, String field, Class<T> type) {
        return type.cast(STARTED.get(request.getString(field)));
    }

    private static Map<String, Object> record(MessageView view) {
        Map<String, Object> record = new LinkedHashMap<>();
        String key = Long.toString(KEYS.incrementAndGet());
        RECEIVED.put(key, view);
        record.put("message", key);
        record.put("message_id", view.getMessageId().toString());
        record.put("topic", view.getTopic());
        record.put("body", StandardCharsets.UTF_8.decode(view.getBody()).toString());
        record.put("tag", view.getTag().orElse(null));
        record.put("keys", new ArrayList<>(view.getKeys()));
        record.put("message_group", view.getMessageGroup().orElse(null));
        record.put("deliver_at_ms", view.getDeliveryTimestamp().orElse(null));
        record.put("properties", view.getProperties());
        record.put("born_host", view.getBornHost());
        record.put("born_ms", view.getBornTimestamp());
        record.put("attempt", view.getDeliveryAttempt());
        record.put("at_ms", System.currentTimeMillis());
        return record;
    }

    private static void event(String kind, String client, MessageView view) {
        Map<String, Object> event = new LinkedHashMap<>();
        event.put("event", kind);
        event.put("consumer", client);
        event.put("message", record(view));
        write(event);
    }

    private static void write(Map<String, Object> value) {
        String line = JSON.toJSONString(
            value, SerializerFeature.WriteMapNullValue, SerializerFeature.DisableCircularReferenceDetect);
        synchronized (OUT) {
            OUT.println(line);
            OUT.flush();
        }
    }
}
