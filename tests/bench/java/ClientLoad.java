import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendCallback;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;

/**
 * Apache's client under load: ClientLoad NAMESRV reads lines "LOAD TOPIC GROUP SECONDS COUNT" and answers each with a line of
 * JSON: messages a second, and the processor time of this process a message (us), from the first message on.
 *
 * LOAD is one, many (64 threads), window (1,000 asynchronous sends under way), batch (4 threads, 32 messages each) or listen.
 */
public final class ClientLoad {
    private static final int BODY_BYTES = 128;
    private static final int BATCH = 32;
    private static final int WINDOW = 1000;
    private static final long PATIENCE_SECONDS = 30;
    private static final com.sun.management.OperatingSystemMXBean SYSTEM =
        (com.sun.management.OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();

    private final String nameServer;
    private final AtomicLong count = new AtomicLong();
    private volatile long began;
    private volatile long spent;

    private ClientLoad(String nameServer) {
        this.nameServer = nameServer;
    }

    public static void main(String[] args) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] words = line.split(" ");
            ClientLoad load = new ClientLoad(args[0]);
            String found;
            try {
                found = words[0].equals("listen") ? load.listen(words[1], words[2], Long.parseLong(words[4]))
                    : load.send(words[0], words[1], words[2], Double.parseDouble(words[3]));
            } catch (Exception e) {
                found = String.format("{\"error\":\"%s\"}", e.toString().replaceAll("[\"\\\\\n]", " "));
            }
            System.out.println(found);
        }
        System.exit(0);
    }

    private void begin() {
        began = System.nanoTime();
        spent = SYSTEM.getProcessCpuTime();
    }

    private String result() {
        double seconds = (System.nanoTime() - began) / 1e9;
        double micros = (SYSTEM.getProcessCpuTime() - spent) / 1e3;
        return String.format("{\"rate\":%.1f,\"cpu_us\":%.3f}", count.get() / seconds, micros / count.get());
    }

    private String send(String load, String topic, String group, double seconds) throws Exception {
        DefaultMQProducer producer = new DefaultMQProducer(group);
        producer.setNamesrvAddr(nameServer);
        producer.setVipChannelEnabled(false);
        producer.setSendMsgTimeout(10_000);
        producer.start();
        try {
            producer.send(message(topic));
            begin();
            long end = began + (long) (seconds * 1e9);
            if (load.equals("window")) {
                sendAsynchronously(producer, topic, end);
            } else {
                sendInThreads(producer, topic, end, load.equals("batch"), load.equals("one") ? 1 : load.equals("batch") ? 4 : 64);
            }
            return result();
        } finally {
            producer.shutdown();
        }
    }

    private void sendInThreads(DefaultMQProducer producer, String topic, long end, boolean batches, int number)
        throws Exception {
        List<Thread> threads = new ArrayList<>();
        for (int i = 0; i < number; i++) {
            Thread thread = new Thread(() -> sendUntil(producer, topic, end, batches));
            thread.start();
            threads.add(thread);
        }
        for (Thread thread : threads) {
            thread.join();
        }
    }

    private void sendUntil(DefaultMQProducer producer, String topic, long end, boolean batches) {
        try {
            while (System.nanoTime() < end) {
                if (batches) {
                    List<Message> batch = new ArrayList<>(BATCH);
                    for (int i = 0; i < BATCH; i++) {
                        batch.add(message(topic));
                    }
                    producer.send(batch);
                    count.addAndGet(BATCH);
                } else {
                    producer.send(message(topic));
                    count.incrementAndGet();
                }
            }
        } catch (Exception e) {
            throw new IllegalStateException("a send failed", e);
        }
    }

    /** What a broker refuses while it is overrun does not count. */
    private void sendAsynchronously(DefaultMQProducer producer, String topic, long end) throws Exception {
        Semaphore window = new Semaphore(WINDOW);
        SendCallback callback = new SendCallback() {
            @Override
            public void onSuccess(SendResult result) {
                count.incrementAndGet();
                window.release();
            }

            @Override
            public void onException(Throwable e) {
                window.release();
            }
        };
        while (System.nanoTime() < end) {
            window.acquire();
            producer.send(message(topic), callback);
        }
        window.tryAcquire(WINDOW, PATIENCE_SECONDS, TimeUnit.SECONDS);
    }

    /** The clock starts with the first call of the listener, whose messages do not count. */
    private String listen(String topic, String group, long number) throws Exception {
        DefaultMQPushConsumer consumer = new DefaultMQPushConsumer(group);
        AtomicLong taken = new AtomicLong();
        CountDownLatch done = new CountDownLatch(1);
        StringBuffer found = new StringBuffer();
        consumer.setNamesrvAddr(nameServer);
        consumer.setInstanceName(group);
        consumer.setVipChannelEnabled(false);
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.setConsumeMessageBatchMaxSize(BATCH);
        consumer.subscribe(topic, "*");
        consumer.registerMessageListener((org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently)
            (messages, context) -> {
                long now = taken.addAndGet(messages.size());
                if (now == messages.size()) {
                    begin();
                } else {
                    count.addAndGet(messages.size());
                }
                if (now >= number && now - messages.size() < number) {
                    found.append(result());
                    done.countDown();
                }
                return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
            });
        consumer.start();
        try {
            if (!done.await(PATIENCE_SECONDS, TimeUnit.SECONDS)) {
                throw new IllegalStateException(taken + " of " + number + " messages");
            }
            return found.toString();
        } finally {
            consumer.shutdown();
        }
    }

    private static Message message(String topic) {
        byte[] body = new byte[BODY_BYTES];
        Arrays.fill(body, (byte) 'x');
        return new Message(topic, body);
    }
}
