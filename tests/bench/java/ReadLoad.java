import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;

/**
 * What a consumer of Apache's gets from one broker, as a line of JSON.
 *
 * ReadLoad PID@NAMESRV drain TOPIC COUNT: messages a second to one consumer that begins at the topic's start, and the
 * broker's processor time a message (us). ReadLoad PID@NAMESRV paced TOPIC RATE: for ten seconds so many sends a second, and
 * the median and 99th percentile of the time from a send to its listener (us).
 */
public final class ReadLoad {
    private static final long WARM_SECONDS = 5;
    private static final long PACED_SECONDS = 10;

    private final Path stat;
    private final String nameServer;
    private final String topic;

    private ReadLoad(String place, String topic) {
        String[] parts = place.split("@");
        stat = Path.of("/proc", parts[0], "stat");
        nameServer = parts[1];
        this.topic = topic;
    }

    public static void main(String[] args) throws Exception {
        ReadLoad load = new ReadLoad(args[0], args[2]);
        long number = Long.parseLong(args[3]);
        System.out.println(args[1].equals("drain") ? load.drain(number) : load.paced(number));
        System.exit(0);
    }

    private DefaultMQPushConsumer consumer(MessageListenerConcurrently listener) throws Exception {
        DefaultMQPushConsumer consumer = new DefaultMQPushConsumer("read_consumer_" + topic);
        consumer.setNamesrvAddr(nameServer);
        consumer.setVipChannelEnabled(false);
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.setPullBatchSize(32);
        consumer.setConsumeMessageBatchMaxSize(32);
        consumer.subscribe(topic, "*");
        consumer.registerMessageListener(listener);
        consumer.start();
        return consumer;
    }

    /** The clock starts with the first message: joining a group takes its time, whoever serves. */
    private String drain(long count) throws Exception {
        AtomicLong taken = new AtomicLong();
        AtomicLong began = new AtomicLong();
        AtomicLong before = new AtomicLong();
        CountDownLatch done = new CountDownLatch(1);
        consumer((messages, context) -> {
            if (began.compareAndSet(0, System.nanoTime())) {
                before.set(processorTicks());
            }
            if (taken.addAndGet(messages.size()) >= count) {
                done.countDown();
            }
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        if (!done.await(120, TimeUnit.SECONDS)) {
            throw new IllegalStateException("only " + taken + " of " + count + " messages");
        }
        double seconds = (System.nanoTime() - began.get()) / 1e9;
        double spent = (processorTicks() - before.get()) * 1e4;
        return String.format("{\"rate\":%.1f,\"broker_us\":%.3f}", taken.get() / seconds, spent / taken.get());
    }

    private String paced(long rate) throws Exception {
        List<Long> nanos = Collections.synchronizedList(new ArrayList<>());
        DefaultMQProducer producer = new DefaultMQProducer("paced_producer");
        producer.setNamesrvAddr(nameServer);
        producer.setVipChannelEnabled(false);
        producer.start();
        producer.send(message(0));
        consumer((messages, context) -> {
            long now = System.nanoTime();
            messages.forEach(message -> nanos.add(now - Long.parseLong(new String(message.getBody()).trim())));
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        long warm = rate * WARM_SECONDS;
        long next = System.nanoTime();
        for (long i = 0; i < rate * (WARM_SECONDS + PACED_SECONDS); i++, next += 1_000_000_000L / rate) {
            LockSupport.parkNanos(next - System.nanoTime());
            if (i == warm) {
                nanos.clear();
            }
            producer.send(message(System.nanoTime()));
        }
        Thread.sleep(500);
        long[] sorted = nanos.stream().mapToLong(Long::longValue).sorted().toArray();
        return String.format("{\"p50_us\":%d,\"p99_us\":%d}", sorted[sorted.length / 2] / 1000,
            sorted[sorted.length * 99 / 100] / 1000);
    }

    /** 128 bytes that begin with a time. */
    private Message message(long nanos) {
        return new Message(topic, String.format("%-128d", nanos).getBytes(StandardCharsets.US_ASCII));
    }

    /** User and system time of the broker, in hundredths of a second. */
    private long processorTicks() {
        try {
            String text = Files.readString(stat);
            String[] fields = text.substring(text.lastIndexOf(')') + 2).split(" ");
            return Long.parseLong(fields[11]) + Long.parseLong(fields[12]);
        } catch (IOException e) {
            throw new IllegalStateException(e);
        }
    }
}
