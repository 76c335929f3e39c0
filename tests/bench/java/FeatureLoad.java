import java.util.Arrays;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.MessageSelector;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.LocalTransactionState;
import org.apache.rocketmq.client.producer.SendStatus;
import org.apache.rocketmq.client.producer.TransactionListener;
import org.apache.rocketmq.client.producer.TransactionMQProducer;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;

/**
 * One of the broker's message features under load, through Apache's own client: FeatureLoad NAMESRV FEATURE TOPIC
 * SECONDS THREADS. Each thread sends one message after the other while a consumer takes them; one line of JSON says how
 * many were sent a second, and how many of those that it was to get the consumer got a second, counted from the first send
 * of the timed stretch to the last delivery.
 */
public final class FeatureLoad {
    private static final int BODY_BYTES = 128;
    private static final long WARM_SECONDS = 2;
    private static final long DRAIN_SECONDS = 120;
    private static final String EXPRESSION = "number BETWEEN 5 AND 9 AND kind = 'even'";

    private final String nameServer;
    private final String feature;
    private final String topic;
    private final AtomicLong number = new AtomicLong();
    private final AtomicLong wanted = new AtomicLong();
    private final AtomicLong delivered = new AtomicLong();
    private final AtomicLong lastDelivery = new AtomicLong();
    private volatile long begin = Long.MAX_VALUE;

    private FeatureLoad(String nameServer, String feature, String topic) {
        this.nameServer = nameServer;
        this.feature = feature;
        this.topic = topic;
    }

    public static void main(String[] args) throws Exception {
        new FeatureLoad(args[0], args[1], args[2]).run(Long.parseLong(args[3]), Integer.parseInt(args[4]));
        System.exit(0);
    }

    private DefaultMQProducer producer() throws Exception {
        TransactionMQProducer producer = new TransactionMQProducer("feature_producer_" + feature);
        producer.setTransactionListener(new TransactionListener() {
            @Override
            public LocalTransactionState executeLocalTransaction(Message message, Object argument) {
                return LocalTransactionState.COMMIT_MESSAGE;
            }

            @Override
            public LocalTransactionState checkLocalTransaction(MessageExt message) {
                return LocalTransactionState.COMMIT_MESSAGE;
            }
        });
        producer.setNamesrvAddr(nameServer);
        producer.setVipChannelEnabled(false);
        producer.setSendMsgTimeout(10_000);
        producer.start();
        return producer;
    }

    private DefaultMQPushConsumer consumer() throws Exception {
        DefaultMQPushConsumer consumer = new DefaultMQPushConsumer("feature_consumer_" + feature);
        consumer.setNamesrvAddr(nameServer);
        consumer.setVipChannelEnabled(false);
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.subscribe(topic, feature.equals("filtered") ? MessageSelector.bySql(EXPRESSION) : MessageSelector.byTag("*"));
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            for (MessageExt message : messages) {
                if (Long.parseLong(message.getUserProperty("at")) >= begin) {
                    delivered.incrementAndGet();
                    lastDelivery.set(System.nanoTime());
                }
            }
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        consumer.start();
        return consumer;
    }

    private boolean send(DefaultMQProducer producer, long at) throws Exception {
        byte[] body = new byte[BODY_BYTES];
        Arrays.fill(body, (byte) 'x');
        Message message = new Message(topic, body);
        message.putUserProperty("at", Long.toString(at));
        boolean passes = true;
        switch (feature) {
            case "delayed":
                message.setDelayTimeLevel(1);
                break;
            case "timed":
                message.setDelayTimeMs(2000);
                break;
            case "filtered":
                long mine = number.getAndIncrement() % 10;
                message.putUserProperty("number", Long.toString(mine));
                message.putUserProperty("kind", mine % 2 == 0 ? "even" : "odd");
                passes = mine >= 5 && mine % 2 == 0;
                break;
            default:
        }
        SendStatus status = feature.equals("transactional")
            ? producer.sendMessageInTransaction(message, null).getSendStatus()
            : producer.send(message).getSendStatus();
        if (status != SendStatus.SEND_OK) {
            return false;
        }
        if (passes && at >= begin) {
            wanted.incrementAndGet();
        }
        return true;
    }

    private void run(long seconds, int threads) throws Exception {
        DefaultMQProducer producer = producer();
        DefaultMQPushConsumer consumer = consumer();
        AtomicLong sent = new AtomicLong();
        AtomicLong failed = new AtomicLong();
        CountDownLatch done = new CountDownLatch(threads);
        long from = System.nanoTime() + TimeUnit.SECONDS.toNanos(WARM_SECONDS);
        long end = from + TimeUnit.SECONDS.toNanos(seconds);
        begin = from;
        for (int i = 0; i < threads; i++) {
            new Thread(() -> {
                for (long now = System.nanoTime(); now < end; now = System.nanoTime()) {
                    boolean ok = false;
                    try {
                        ok = send(producer, now);
                    } catch (Exception e) {
                        if (failed.get() == 0) {
                            System.err.println(e);
                        }
                    }
                    if (now >= from) {
                        (ok ? sent : failed).incrementAndGet();
                    }
                }
                done.countDown();
            }).start();
        }
        done.await();
        long stop = System.nanoTime() + TimeUnit.SECONDS.toNanos(DRAIN_SECONDS);
        while (delivered.get() < wanted.get() && System.nanoTime() < stop) {
            Thread.sleep(20);
        }
        double took = Math.max(1, lastDelivery.get() - from) / 1e9;
        System.out.printf("{\"sent\":%d,\"failed\":%d,\"sent_per_second\":%.1f,\"wanted\":%d,\"delivered\":%d,"
                + "\"delivered_per_second\":%.1f}%n",
            sent.get(), failed.get(), sent.get() / (double) seconds, wanted.get(), delivered.get(),
            delivered.get() / took);
        consumer.shutdown();
        producer.shutdown();
    }
}
