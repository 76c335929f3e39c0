import com.alibaba.fastjson.JSON;
import com.alibaba.fastjson.JSONObject;
import com.alibaba.fastjson.serializer.SerializerFeature;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import org.apache.rocketmq.client.exception.MQBrokerException;
import org.apache.rocketmq.client.exception.MQClientException;
import org.apache.rocketmq.client.producer.DefaultMQProducer;

/**
 * Apache's Java client and mqadmin behind JSON lines: one virtual machine serves a whole test run.
 *
 * Reads {"id": 1, "do": "send", ...} from standard input, writes {"id": 1, "result": ...} or
 * {"id": 1, "error": {"type", "code", "message"}}, and {"event": "message", "consumer": NAME, "message": {...}}
 * as messages arrive. Commands run beside each other; the end of standard input ends the process.
 */
public final class Peer {
    /** One command: its arguments in, the value of "result" out. */
    interface Command {
        Object run(JSONObject arguments) throws Exception;
    }

    static final Map<String, Command> COMMANDS = new HashMap<>();
    /** Everything that was started and not yet stopped, by the name the test gave it. */
    static final Map<String, Runnable> STARTED = new ConcurrentHashMap<>();
    /** The real standard output: the tools' own prints are redirected while they run. */
    private static final PrintStream OUT = System.out;

    private Peer() {
    }

    public static void main(String[] args) throws Exception {
        Producers.register(COMMANDS);
        Consumers.register(COMMANDS);
        Pulls.register(COMMANDS);
        LitePulls.register(COMMANDS);
        Pops.register(COMMANDS);
        Transactions.register(COMMANDS);
        Requests.register(COMMANDS);
        Admin.register(COMMANDS);
        Soak.register(COMMANDS);
        Keys.register(COMMANDS);
        Allocations.register(COMMANDS);
        Configurations.register(COMMANDS);
        COMMANDS.put("stop", Peer::stop);
        System.setOut(System.err);
        new DefaultMQProducer("logging");  // its logger prints how it was configured: not into a command's output
        ExecutorService workers = Executors.newCachedThreadPool();
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            JSONObject request = JSON.parseObject(line);
            workers.execute(() -> answer(request));
        }
        System.exit(0);
    }

    private static Object stop(JSONObject arguments) throws Exception {
        Runnable shutdown = STARTED.remove(arguments.getString("name"));
        return shutdown != null && Hurry.through(() -> {
            shutdown.run();
            return true;
        });
    }

    private static void answer(JSONObject request) {
        Map<String, Object> reply = new LinkedHashMap<>();
        reply.put("id", request.get("id"));
        try {
            Command command = COMMANDS.get(request.getString("do"));
            if (command == null) {
                throw new IllegalArgumentException("no such command: " + request.getString("do"));
            }
            reply.put("result", command.run(request));
        } catch (Throwable failure) {
            reply.put("error", describe(failure));
        }
        write(reply);
    }

    /** Type, response code (-1 where there is none) and message of a failure. */
    static Map<String, Object> describe(Throwable failure) {
        Map<String, Object> error = new LinkedHashMap<>();
        error.put("type", failure.getClass().getSimpleName());
        error.put("code", codeOf(failure));
        error.put("message", String.valueOf(failure.getMessage()));
        return error;
    }

    static int codeOf(Throwable failure) {
        if (failure instanceof MQBrokerException) {
            return ((MQBrokerException) failure).getResponseCode();
        }
        if (failure instanceof MQClientException) {
            return ((MQClientException) failure).getResponseCode();
        }
        return -1;
    }

    static void event(String kind, String consumer, Object message) {
        Map<String, Object> event = new LinkedHashMap<>();
        event.put("event", kind);
        event.put("consumer", consumer);
        event.put("message", message);
        write(event);
    }

    private static void write(Map<String, Object> value) {
        String line = JSON.toJSONString(value, SerializerFeature.WriteMapNullValue, SerializerFeature.DisableCircularReferenceDetect);
        synchronized (OUT) {
            OUT.println(line);
            OUT.flush();
        }
    }
}
