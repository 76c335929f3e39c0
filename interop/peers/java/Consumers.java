import com.alibaba.fastjson.JSONObject;
import java.nio.charset.StandardCharsets;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.Collectors;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.MessageSelector;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.ConsumeOrderlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.consumer.listener.MessageListenerOrderly;
import org.apache.rocketmq.client.impl.factory.MQClientInstance;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.MessageClientExt;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.remoting.protocol.heartbeat.MessageModel;

/** Push consumers whose messages become events. */
final class Consumers {
    static final Map<String, DefaultMQPushConsumer> CONSUMERS = new ConcurrentHashMap<>();
    private static final int MOST_HEARTBEATS = 1_000;

    private Consumers() {
    }

    static void register(Map<String, Peer.Command> commands) {
        commands.put("push_consumer", Consumers::start);
        commands.put("assigned", Consumers::assigned);
    }

    /** Arguments: name, name_server, group, topic, tags or sql, orderly, broadcast, from_last; refuse = how many first deliveries
     * fail; retry_level = their delay, 0 for the broker's choice; most_retries; pause_ms after each report. */
    private static Object start(JSONObject arguments) throws Exception {
        String name = arguments.getString("name");
        DefaultMQPushConsumer consumer = new DefaultMQPushConsumer(arguments.getString("group"), Credentials.of(arguments));
        consumer.setNamesrvAddr(arguments.getString("name_server"));
        consumer.setInstanceName(name);
        Settings.apply(consumer, arguments);
        consumer.setConsumeThreadMin(4);
        consumer.setConsumeThreadMax(4);
        // A shutdown lets listener calls end: a message that was reported is then also committed.
        consumer.setAwaitTerminationMillisWhenShutdown(5_000);
        consumer.setConsumeFromWhere(arguments.getBooleanValue("from_last")
            ? ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET : ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        if (arguments.getBooleanValue("broadcast")) {
            consumer.setMessageModel(MessageModel.BROADCASTING);
        }
        if (arguments.containsKey("sql")) {
            consumer.subscribe(arguments.getString("topic"), MessageSelector.bySql(arguments.getString("sql")));
        } else {
            consumer.subscribe(arguments.getString("topic"), arguments.getString("tags"));
        }
        if (arguments.containsKey("most_retries")) {
            consumer.setMaxReconsumeTimes(arguments.getIntValue("most_retries"));
        }
        listen(consumer, arguments);
        tellBrokers(consumer);
        consumer.start();
        CONSUMERS.put(name, consumer);
        Peer.STARTED.put(name, () -> {
            CONSUMERS.remove(name);
            consumer.shutdown();
        });
        return name;
    }

    /** Repeats the heartbeat after each change of queues. The client leaves its own out where that of its timer is under way, which
     * it is a second after the start, when the first queues come; until a later one, after 20 s, brokers refuse its pulls: the
     * version of its subscription is newer than what they know (SUBSCRIPTION_NOT_LATEST). */
    static void tellBrokers(DefaultMQPushConsumer consumer) {
        consumer.setMessageQueueListener((topic, all, divided) -> {
            MQClientInstance client = consumer.getDefaultMQPushConsumerImpl().getmQClientFactory();
            for (int tries = 0; tries < MOST_HEARTBEATS && !client.sendHeartbeatToAllBrokerWithLock(); tries++) {
                LockSupport.parkNanos(10_000_000);
            }
        });
    }

    private static void listen(DefaultMQPushConsumer consumer, JSONObject arguments) {
        String name = arguments.getString("name");
        AtomicInteger refuse = new AtomicInteger(arguments.getIntValue("refuse"));
        long pause = arguments.getLongValue("pause_ms");
        if (arguments.getBooleanValue("orderly")) {
            consumer.registerMessageListener((MessageListenerOrderly) (messages, context) ->
                report(name, messages, refuse, pause) ? ConsumeOrderlyStatus.SUCCESS : ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT);
        } else {
            consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
                context.setDelayLevelWhenNextConsume(arguments.getIntValue("retry_level"));
                return report(name, messages, refuse, pause) ? ConsumeConcurrentlyStatus.CONSUME_SUCCESS : ConsumeConcurrentlyStatus.RECONSUME_LATER;
            });
        }
    }

    /** Reports the messages; False while there are deliveries left to refuse. */
    private static boolean report(String name, List<MessageExt> messages, AtomicInteger refuse, long pause) {
        boolean accepted = refuse.getAndUpdate(left -> Math.max(0, left - 1)) == 0;
        messages.forEach(message -> Peer.event(accepted ? "message" : "refused", name, describe(message)));
        LockSupport.parkNanos(pause * 1_000_000);
        return accepted;
    }

    /** Ids of the queues that rebalance gave to this consumer, retry topics left out. */
    private static Object assigned(JSONObject arguments) {
        DefaultMQPushConsumer consumer = CONSUMERS.get(arguments.getString("consumer"));
        return consumer.getDefaultMQPushConsumerImpl().getRebalanceImpl().getProcessQueueTable().keySet().stream()
            .filter(queue -> queue.getTopic().equals(arguments.getString("topic")))
            .map(queue -> queue.getQueueId()).sorted().collect(Collectors.toList());
    }

    static Map<String, Object> describe(MessageExt message) {
        Map<String, Object> result = new LinkedHashMap<>();
        result.put("topic", message.getTopic());
        result.put("broker_name", message.getBrokerName());
        result.put("queue_id", message.getQueueId());
        result.put("queue_offset", message.getQueueOffset());
        result.put("msg_id", message.getMsgId());
        result.put("offset_msg_id", message instanceof MessageClientExt ? ((MessageClientExt) message).getOffsetMsgId() : message.getMsgId());
        result.put("tags", message.getTags());
        result.put("keys", message.getKeys());
        result.put("body", new String(message.getBody(), StandardCharsets.UTF_8));
        result.put("properties", message.getProperties());
        result.put("reconsume_times", message.getReconsumeTimes());
        result.put("store_size", message.getStoreSize());
        result.put("born_timestamp", message.getBornTimestamp());
        result.put("store_timestamp", message.getStoreTimestamp());
        result.put("received_at_ms", System.currentTimeMillis());
        return result;
    }
}
