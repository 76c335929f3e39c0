import com.alibaba.fastjson.JSONObject;
import java.lang.reflect.Field;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.stream.Collectors;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.impl.consumer.DefaultMQPushConsumerImpl;
import org.apache.rocketmq.client.impl.consumer.RebalanceImpl;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;

/** Push consumers that leave the division of queues, and whether to pop, to the broker. */
final class Pops {
    private Pops() {
    }

    static void register(Map<String, Peer.Command> commands) {
        commands.put("pop_consumer", Pops::start);
        commands.put("popped_queues", Pops::popped);
    }

    /** Arguments: name, name_server, group, topic, tags, invisible_ms. A message whose body begins with "refuse" is refused at its
     * first delivery, to come after a second; one that begins with "hold" is held longer than it stays invisible. */
    private static Object start(JSONObject arguments) throws Exception {
        String name = arguments.getString("name");
        DefaultMQPushConsumer consumer = new DefaultMQPushConsumer(arguments.getString("group"), Credentials.of(arguments));
        consumer.setNamesrvAddr(arguments.getString("name_server"));
        consumer.setInstanceName(name);
        consumer.setConsumeThreadMin(4);
        consumer.setConsumeThreadMax(4);
        consumer.setAwaitTerminationMillisWhenShutdown(5_000);
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.setClientRebalance(false);
        consumer.setPopInvisibleTime(arguments.getLongValue("invisible_ms"));
        consumer.subscribe(arguments.getString("topic"), arguments.getString("tags"));
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            MessageExt message = messages.get(0);
            String body = new String(message.getBody(), StandardCharsets.UTF_8);
            boolean first = message.getReconsumeTimes() == 0;
            if (first && body.startsWith("refuse")) {
                Peer.event("refused", name, Consumers.describe(message));
                return ConsumeConcurrentlyStatus.RECONSUME_LATER;
            }
            if (first && body.startsWith("hold")) {
                Peer.event("held", name, Consumers.describe(message));
                sleep(consumer.getPopInvisibleTime() + 1_000);
                return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
            }
            Peer.event("message", name, Consumers.describe(message));
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        retryAfterASecond(consumer);
        Consumers.tellBrokers(consumer);
        consumer.start();
        Consumers.CONSUMERS.put(name, consumer);
        Peer.STARTED.put(name, () -> {
            Consumers.CONSUMERS.remove(name);
            consumer.shutdown();
        });
        return name;
    }

    private static void sleep(long milliseconds) {
        try {
            Thread.sleep(milliseconds);
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
        }
    }

    /** The client's table of delays begins with ten seconds, and there is no setter. */
    private static void retryAfterASecond(DefaultMQPushConsumer consumer) throws Exception {
        Field levels = DefaultMQPushConsumerImpl.class.getDeclaredField("popDelayLevel");
        levels.setAccessible(true);
        ((int[]) levels.get(consumer.getDefaultMQPushConsumerImpl()))[0] = 1;
    }

    /** Ids of the queues that this consumer pops now: -1 stands for all queues of a broker. */
    private static Object popped(JSONObject arguments) throws Exception {
        DefaultMQPushConsumer consumer = Consumers.CONSUMERS.get(arguments.getString("consumer"));
        Field table = RebalanceImpl.class.getDeclaredField("popProcessQueueTable");
        table.setAccessible(true);
        Map<?, ?> queues = (Map<?, ?>) table.get(consumer.getDefaultMQPushConsumerImpl().getRebalanceImpl());
        return queues.keySet().stream().map(queue -> ((MessageQueue) queue).getQueueId()).sorted().collect(Collectors.toList());
    }
}
