import com.alibaba.fastjson.JSONObject;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.stream.Collectors;
import org.apache.rocketmq.client.consumer.DefaultLitePullConsumer;
import org.apache.rocketmq.client.consumer.MessageSelector;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.MessageQueue;

/** Consumers that fetch in the background and are polled: with queues given by rebalance, or chosen. */
final class LitePulls {
    private static final Map<String, DefaultLitePullConsumer> CONSUMERS = new ConcurrentHashMap<>();

    private LitePulls() {
    }

    static void register(Map<String, Peer.Command> commands) {
        commands.put("lite_pull_consumer", LitePulls::start);
        commands.put("poll", LitePulls::poll);
        commands.put("lite_assigned", LitePulls::assigned);
        commands.put("lite_offsets", LitePulls::offsets);
        commands.put("seek", done(arguments -> of(arguments).seek(queue(arguments), arguments.getLongValue("offset"))));
        commands.put("seek_to_begin", done(arguments -> of(arguments).seekToBegin(queue(arguments))));
        commands.put("seek_to_end", done(arguments -> of(arguments).seekToEnd(queue(arguments))));
        commands.put("pause", done(arguments -> of(arguments).pause(List.of(queue(arguments)))));
        commands.put("resume", done(arguments -> of(arguments).resume(List.of(queue(arguments)))));
        commands.put("commit", done(arguments -> of(arguments).commit()));
    }

    private interface Action {
        void run(JSONObject arguments) throws Exception;
    }

    private static Peer.Command done(Action action) {
        return arguments -> {
            action.run(arguments);
            return true;
        };
    }

    /** Arguments: name, name_server, group, topic, tags or sql, auto_commit; queue_ids of broker_name to choose queues. */
    private static Object start(JSONObject arguments) throws Exception {
        String name = arguments.getString("name");
        DefaultLitePullConsumer consumer = new DefaultLitePullConsumer(arguments.getString("group"));
        consumer.setNamesrvAddr(arguments.getString("name_server"));
        consumer.setInstanceName(name);
        consumer.setAutoCommit(arguments.getBooleanValue("auto_commit"));
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        Settings.apply(consumer, arguments);
        String topic = arguments.getString("topic");
        List<MessageQueue> chosen = queues(arguments);
        if (chosen == null) {
            consumer.subscribe(topic, arguments.containsKey("sql")
                ? MessageSelector.bySql(arguments.getString("sql")) : MessageSelector.byTag(arguments.getString("tags")));
        } else if (arguments.containsKey("tags")) {
            consumer.setSubExpressionForAssign(topic, arguments.getString("tags"));
        }
        consumer.start();
        if (chosen != null) {
            consumer.assign(chosen);
        }
        CONSUMERS.put(name, consumer);
        Peer.STARTED.put(name, () -> {
            CONSUMERS.remove(name);
            consumer.shutdown();
        });
        return name;
    }

    private static DefaultLitePullConsumer of(JSONObject arguments) {
        return CONSUMERS.get(arguments.getString("consumer"));
    }

    private static MessageQueue queue(JSONObject arguments) {
        return new MessageQueue(arguments.getString("topic"), arguments.getString("broker_name"), arguments.getIntValue("queue_id"));
    }

    private static List<MessageQueue> queues(JSONObject arguments) {
        if (!arguments.containsKey("queue_ids")) {
            return null;
        }
        return arguments.getJSONArray("queue_ids").stream()
            .map(id -> new MessageQueue(arguments.getString("topic"), arguments.getString("broker_name"), (Integer) id))
            .collect(Collectors.toList());
    }

    /** The next messages, none after timeout_ms without any. */
    private static Object poll(JSONObject arguments) {
        return of(arguments).poll(arguments.getLongValue("timeout_ms")).stream().map(Consumers::describe).collect(Collectors.toList());
    }

    private static Object assigned(JSONObject arguments) throws Exception {
        return of(arguments).assignment().stream().map(MessageQueue::getQueueId).sorted().collect(Collectors.toList());
    }

    /** What is committed of a queue, and its offset at timestamp_ms. */
    private static Object offsets(JSONObject arguments) throws Exception {
        Map<String, Object> result = new LinkedHashMap<>();
        result.put("committed", of(arguments).committed(queue(arguments)));
        result.put("at_time", of(arguments).offsetForTimestamp(queue(arguments), arguments.getLongValue("timestamp_ms")));
        return result;
    }
}
