import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.Phaser;
import java.util.concurrent.Semaphore;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.rocketmq.acl.common.AclClientRPCHook;
import org.apache.rocketmq.acl.common.SessionCredentials;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendCallback;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.common.message.Message;

/**
 * One load, put on several brokers in turn for a moment each: PairLoad LOAD THREADS ROUNDS MILLIS PID@NAMESRV[@USER@SECRET]...
 *
 * A line of JSON for each broker and round: messages a second, the broker's processor time a message (us), and the
 * median and 99th percentile of a send (us). LOAD is single, large (4 KiB), async (1,000 under way), batch (32 alike) or
 * ragged (32 of different lengths); it goes to the topic Pair_LOAD.
 */
public final class PairLoad {
    private static final int BATCH = 32;
    private static final int BODY_BYTES = 128;
    private static final int LARGE_BODY_BYTES = 4096;
    private static final int WINDOW = 1000;
    private static final long WARM_MILLIS = 10_000;

    private final String load;
    private final Semaphore window = new Semaphore(WINDOW);
    private final DefaultMQProducer producer;
    private final Path stat;
    private final AtomicLong sent = new AtomicLong();
    private final List<Long> nanos = Collections.synchronizedList(new ArrayList<>());

    private PairLoad(String load, String... parts) throws Exception {
        this.load = load;
        String pid = parts[0], nameServer = parts[1];
        producer = parts.length < 4 ? new DefaultMQProducer("pair_producer")
            : new DefaultMQProducer("pair_producer", new AclClientRPCHook(new SessionCredentials(parts[2], parts[3])));
        stat = Path.of("/proc", pid, "stat");
        producer.setNamesrvAddr(nameServer);
        producer.setInstanceName(pid);
        producer.setVipChannelEnabled(false);
        producer.setCompressMsgBodyOverHowmuch(Integer.MAX_VALUE);
        producer.start();
        for (long end = System.nanoTime() + 60_000_000_000L; ; Thread.sleep(100)) {
            try {
                producer.send(message(1));
                return;
            } catch (Exception e) {
                if (System.nanoTime() > end) {
                    throw e;
                }
            }
        }
    }

    public static void main(String[] args) throws Exception {
        int threads = Integer.parseInt(args[1]);
        int rounds = Integer.parseInt(args[2]);
        long millis = Long.parseLong(args[3]);
        List<PairLoad> sides = new ArrayList<>();
        for (String side : Arrays.copyOfRange(args, 4, args.length)) {
            sides.add(new PairLoad(args[0], side.split("@")));
        }
        int warm = (int) (WARM_MILLIS / millis) + 1;
        for (int round = -warm; round < rounds; round++) {
            for (int i = 0; i < sides.size(); i++) {
                int side = round % 2 == 0 ? i : sides.size() - 1 - i;
                String figures = sides.get(side).slice(threads, millis);
                if (round >= 0) {
                    System.out.printf("{\"round\":%d,\"side\":%d,%s}%n", round, side, figures);
                }
            }
        }
        System.exit(0);
    }

    private String slice(int threads, long millis) throws Exception {
        sent.set(0);
        nanos.clear();
        Phaser ends = new Phaser(threads + 1);
        long before = processorTicks();
        long began = System.nanoTime();
        long end = began + millis * 1_000_000L;
        for (int i = 0; i < threads; i++) {
            new Thread(() -> run(end, ends)).start();
        }
        ends.arriveAndAwaitAdvance();
        double seconds = (System.nanoTime() - began) / 1e9;
        double spent = (processorTicks() - before) * 1e4;
        long[] sorted = nanos.stream().mapToLong(Long::longValue).sorted().toArray();
        return String.format("\"rate\":%.1f,\"broker_us\":%.3f,\"p50_us\":%d,\"p99_us\":%d", sent.get() / seconds,
            spent / sent.get(), sorted[sorted.length / 2] / 1000, sorted[sorted.length * 99 / 100] / 1000);
    }

    private void run(long end, Phaser ends) {
        List<Long> mine = new ArrayList<>();
        long count = 0;
        for (long before = System.nanoTime(); before < end; ) {
            try {
                count += send();
            } catch (Exception e) {
                throw new IllegalStateException("a send failed", e);
            }
            long after = System.nanoTime();
            if (!load.equals("async")) {
                mine.add(after - before);
            }
            before = after;
        }
        window.acquireUninterruptibly(WINDOW);
        window.release(WINDOW);
        sent.addAndGet(count);
        nanos.addAll(mine);
        ends.arriveAndDeregister();
    }

    private int send() throws Exception {
        switch (load) {
            case "single":
                producer.send(message(BODY_BYTES));
                return 1;
            case "large":
                producer.send(message(LARGE_BODY_BYTES));
                return 1;
            case "async":
                sendAsynchronously();
                return 0;
            default:
                return sendBatch();
        }
    }

    /** What a broker refuses while it is overrun does not count. */
    private void sendAsynchronously() throws Exception {
        window.acquireUninterruptibly();
        long before = System.nanoTime();
        producer.send(message(BODY_BYTES), new SendCallback() {
            @Override
            public void onSuccess(SendResult result) {
                nanos.add(System.nanoTime() - before);
                sent.incrementAndGet();
                window.release();
            }

            @Override
            public void onException(Throwable e) {
                window.release();
            }
        });
    }

    private int sendBatch() throws Exception {
        List<Message> batch = new ArrayList<>(BATCH);
        for (int i = 0; i < BATCH; i++) {
            batch.add(message(load.equals("batch") ? BODY_BYTES : BODY_BYTES + i * 37 % 64));
        }
        producer.send(batch);
        return BATCH;
    }

    private Message message(int size) {
        byte[] body = new byte[size];
        Arrays.fill(body, (byte) 'x');
        return new Message("Pair_" + load, body);
    }

    /** User and system time of the broker, in hundredths of a second. */
    private long processorTicks() throws IOException {
        String text = Files.readString(stat);
        String[] fields = text.substring(text.lastIndexOf(')') + 2).split(" ");
        return Long.parseLong(fields[11]) + Long.parseLong(fields[12]);
    }
}
