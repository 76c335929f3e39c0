import com.alibaba.fastjson.JSONObject;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.RequestCallback;
import org.apache.rocketmq.client.utils.MessageUtil;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;

/** Requests in callback form, and a consumer that answers them. */
final class Requests {
    private Requests() {
    }

    static void register(Map<String, Peer.Command> commands) {
        commands.put("request", Requests::request);
        commands.put("answering_consumer", Requests::answer);
    }

    /** Sends a request and answers with the message that came as its reply. Arguments: those of send, timeout_ms. */
    private static Object request(JSONObject arguments) throws Exception {
        long timeout = arguments.getLongValue("timeout_ms");
        CompletableFuture<Object> reply = new CompletableFuture<>();
        Producers.of(arguments).request(Producers.message(arguments), new RequestCallback() {
            @Override
            public void onSuccess(Message message) {
                reply.complete(Consumers.describe((MessageExt) message));
            }

            @Override
            public void onException(Throwable failure) {
                reply.complete(Peer.describe(failure));
            }
        }, timeout);
        return reply.get(timeout + 10_000, TimeUnit.MILLISECONDS);
    }

    /** Replies to each message with "reply to " and its body; results of the sends are events. */
    private static Object answer(JSONObject arguments) throws Exception {
        String name = arguments.getString("name");
        DefaultMQProducer replies = new DefaultMQProducer(arguments.getString("group") + "_replies");
        replies.setNamesrvAddr(arguments.getString("name_server"));
        replies.setInstanceName(name + "_replies");
        replies.start();
        DefaultMQPushConsumer consumer = new DefaultMQPushConsumer(arguments.getString("group"));
        consumer.setNamesrvAddr(arguments.getString("name_server"));
        consumer.setInstanceName(name);
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.subscribe(arguments.getString("topic"), "*");
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            for (MessageExt message : messages) {
                String text = "reply to " + new String(message.getBody(), StandardCharsets.UTF_8);
                try {
                    Message reply = MessageUtil.createReplyMessage(message, text.getBytes(StandardCharsets.UTF_8));
                    Peer.event("reply", name, Producers.describe(replies.send(reply, 5000)));
                } catch (Exception failure) {
                    Peer.event("reply", name, Peer.describe(failure));
                }
            }
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        Consumers.tellBrokers(consumer);
        consumer.start();
        Peer.STARTED.put(name, () -> {
            consumer.shutdown();
            replies.shutdown();
        });
        return name;
    }
}
