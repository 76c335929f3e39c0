import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Semaphore;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.rocketmq.client.apis.ClientConfiguration;
import org.apache.rocketmq.client.apis.ClientServiceProvider;
import org.apache.rocketmq.client.apis.consumer.FilterExpression;
import org.apache.rocketmq.client.apis.consumer.SimpleConsumer;
import org.apache.rocketmq.client.apis.message.Message;
import org.apache.rocketmq.client.apis.message.MessageView;
import org.apache.rocketmq.client.apis.producer.Producer;

/**
 * Apache's gRPC client for Java under load, on several servers in turn, a moment each.
 *
 * GrpcLoad TOPIC GROUP WARM_UP_CALLS ROUNDS MILLIS PID@HOST:PORT... prints a line of JSON for each load, round and server: calls a
 * second, and the processor time of the server's process a call (us). The loads are one (sends one after the other), many (64
 * sends under way) and take (receives of 32 messages, each message acknowledged; a call is a message).
 */
public final class GrpcLoad {
    private static final ClientServiceProvider PROVIDER = ClientServiceProvider.loadService();
    private static final int BODY_BYTES = 128;
    private static final int UNDER_WAY = 64;
    private static final int BATCH = 32;
    private static final Duration INVISIBLE = Duration.ofSeconds(60);
    private static final double MICROS_A_TICK = 1e6 / 100;

    private final String place;
    private final long pid;
    private final String topic;
    private final Producer producer;
    private final SimpleConsumer consumer;
    private final byte[] body = "x".repeat(BODY_BYTES).getBytes(StandardCharsets.US_ASCII);
    private final AtomicLong failures = new AtomicLong();
    private long sent;
    private long taken;

    private GrpcLoad(String place, String topic, String group) throws Exception {
        this.place = place;
        this.topic = topic;
        int at = place.indexOf('@');
        pid = Long.parseLong(place.substring(0, at));
        ClientConfiguration configuration = ClientConfiguration.newBuilder().setEndpoints(place.substring(at + 1))
            .enableSsl(false).setRequestTimeout(Duration.ofSeconds(10)).build();
        producer = PROVIDER.newProducerBuilder().setClientConfiguration(configuration).setTopics(topic).build();
        consumer = PROVIDER.newSimpleConsumerBuilder().setClientConfiguration(configuration).setConsumerGroup(group)
            .setAwaitDuration(Duration.ofSeconds(5))
            .setSubscriptionExpressions(Collections.singletonMap(topic, FilterExpression.SUB_ALL)).build();
    }

    public static void main(String[] args) throws Exception {
        long calls = Long.parseLong(args[2]);
        int rounds = Integer.parseInt(args[3]);
        long millis = Long.parseLong(args[4]);
        List<GrpcLoad> sides = new ArrayList<>();
        for (int at = 5; at < args.length; at++) {
            sides.add(new GrpcLoad(args[at], args[0], args[1]));
        }
        for (GrpcLoad side : sides) {
            side.many(calls / 2, Long.MAX_VALUE);
            side.one(calls / 4, Long.MAX_VALUE);
            side.take(calls / 4, Long.MAX_VALUE);
        }
        for (int round = 0; round < rounds; round++) {
            for (int load = 0; load < 3; load++) {
                for (int turn = 0; turn < sides.size(); turn++) {
                    sides.get((turn + round) % sides.size()).measure(load, round, millis);
                }
            }
        }
        Runtime.getRuntime().halt(0);
    }

    private void measure(int load, int round, long millis) throws Exception {
        double spent = ticks();
        long began = System.nanoTime();
        long until = began + millis * 1_000_000;
        long count = load == 0 ? one(Long.MAX_VALUE, until) : load == 1 ? many(Long.MAX_VALUE, until) : take(Long.MAX_VALUE, until);
        double seconds = (System.nanoTime() - began) / 1e9;
        System.out.printf("{\"load\":\"%s\",\"round\":%d,\"place\":\"%s\",\"rate\":%.1f,\"server_us\":%.1f,\"failures\":%d}%n",
            new String[] {"one", "many", "take"}[load], round, place, count / seconds,
            (ticks() - spent) * MICROS_A_TICK / count, failures.get());
    }

    private Message message() {
        return PROVIDER.newMessageBuilder().setTopic(topic).setTag("tag").setBody(body).build();
    }

    private long one(long most, long until) throws Exception {
        long count = 0;
        for (; count < most && System.nanoTime() < until; count++) {
            producer.send(message());
        }
        sent += count;
        return count;
    }

    private long many(long most, long until) throws Exception {
        Semaphore room = new Semaphore(UNDER_WAY);
        long count = 0;
        for (; count < most && System.nanoTime() < until; count++) {
            room.acquire();
            producer.sendAsync(message()).whenComplete((receipt, failure) -> {
                if (failure != null) {
                    failures.incrementAndGet();
                }
                room.release();
            });
        }
        room.acquire(UNDER_WAY);
        sent += count;
        return count;
    }

    /** Ends early where little is left: what a receive waits for is not measured. */
    private long take(long most, long until) throws Exception {
        long count = 0;
        while (count < most && System.nanoTime() < until && sent - taken > 4 * BATCH) {
            List<CompletableFuture<Void>> acknowledged = new ArrayList<>();
            for (MessageView view : consumer.receive(BATCH, INVISIBLE)) {
                acknowledged.add(consumer.ackAsync(view));
            }
            CompletableFuture.allOf(acknowledged.toArray(new CompletableFuture[0])).join();
            count += acknowledged.size();
            taken += acknowledged.size();
        }
        return count;
    }

    private double ticks() throws IOException {
        String stat = Files.readString(Path.of("/proc/" + pid + "/stat"));
        String[] words = stat.substring(stat.lastIndexOf(')') + 2).split(" ");
        return Double.parseDouble(words[11]) + Double.parseDouble(words[12]);
    }
}
