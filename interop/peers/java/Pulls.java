import com.alibaba.fastjson.JSONObject;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.stream.Collectors;
import org.apache.rocketmq.client.consumer.DefaultMQPullConsumer;
import org.apache.rocketmq.client.consumer.PullResult;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;

/** A consumer that asks queue by queue, and the offset questions that go with it. */
@SuppressWarnings("deprecation")
final class Pulls {
    private static final Map<String, DefaultMQPullConsumer> CONSUMERS = new ConcurrentHashMap<>();

    private Pulls() {
    }

    static void register(Map<String, Peer.Command> commands) {
        commands.put("pull_consumer", Pulls::start);
        commands.put("queues", Pulls::queues);
        commands.put("pull", Pulls::pull);
        commands.put("offsets", Pulls::offsets);
        commands.put("commit_offset", Pulls::commit);
        commands.put("view_message", Pulls::view);
    }

    private static Object start(JSONObject arguments) throws Exception {
        String name = arguments.getString("name");
        DefaultMQPullConsumer consumer = new DefaultMQPullConsumer(arguments.getString("group"));
        consumer.setNamesrvAddr(arguments.getString("name_server"));
        consumer.setInstanceName(name);
        consumer.start();
        CONSUMERS.put(name, consumer);
        Peer.STARTED.put(name, () -> {
            CONSUMERS.remove(name);
            consumer.shutdown();
        });
        return name;
    }

    private static DefaultMQPullConsumer of(JSONObject arguments) {
        return CONSUMERS.get(arguments.getString("consumer"));
    }

    private static MessageQueue queue(JSONObject arguments) {
        return new MessageQueue(arguments.getString("topic"), arguments.getString("broker_name"), arguments.getIntValue("queue_id"));
    }

    private static Object queues(JSONObject arguments) throws Exception {
        return of(arguments).fetchSubscribeMessageQueues(arguments.getString("topic")).stream()
            .map(MessageQueue::getQueueId).sorted().collect(Collectors.toList());
    }

    /** Arguments: queue, tags, offset, max; waits on the broker when block is true. */
    private static Object pull(JSONObject arguments) throws Exception {
        String tags = arguments.getString("tags");
        long offset = arguments.getLongValue("offset");
        int max = arguments.getIntValue("max");
        PullResult pulled = arguments.getBooleanValue("block")
            ? of(arguments).pullBlockIfNotFound(queue(arguments), tags, offset, max)
            : of(arguments).pull(queue(arguments), tags, offset, max);
        Map<String, Object> result = new LinkedHashMap<>();
        result.put("status", pulled.getPullStatus().name());
        result.put("next", pulled.getNextBeginOffset());
        result.put("min", pulled.getMinOffset());
        result.put("max", pulled.getMaxOffset());
        List<MessageExt> found = pulled.getMsgFoundList();
        result.put("messages", found == null ? List.of() : found.stream().map(Consumers::describe).collect(Collectors.toList()));
        return result;
    }

    /** Bounds of a queue, the group's stored offset (-1 without one), and the offset at a time (timestamp_ms). */
    private static Object offsets(JSONObject arguments) throws Exception {
        MessageQueue queue = queue(arguments);
        Map<String, Object> result = new LinkedHashMap<>();
        result.put("min", of(arguments).minOffset(queue));
        result.put("max", of(arguments).maxOffset(queue));
        result.put("stored", of(arguments).fetchConsumeOffset(queue, true));
        result.put("earliest_ms", of(arguments).earliestMsgStoreTime(queue));
        if (arguments.containsKey("timestamp_ms")) {
            result.put("at_time", of(arguments).searchOffset(queue, arguments.getLongValue("timestamp_ms")));
        }
        return result;
    }

    /** Stores offset for the group on the broker, at once. */
    private static Object commit(JSONObject arguments) throws Exception {
        of(arguments).getDefaultMQPullConsumerImpl().getOffsetStore()
            .updateConsumeOffsetToBroker(queue(arguments), arguments.getLongValue("offset"), false);
        return null;
    }

    private static Object view(JSONObject arguments) throws Exception {
        return Consumers.describe(of(arguments).viewMessage(arguments.getString("topic"), arguments.getString("msg_id")));
    }
}
