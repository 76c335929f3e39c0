import com.alibaba.fastjson.JSONObject;
import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Base64;
import java.util.Collections;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Timer;
import java.util.TimerTask;
import java.util.TreeMap;
import org.apache.rocketmq.remoting.netty.NettyClientConfig;
import org.apache.rocketmq.remoting.netty.NettyRemotingClient;
import org.apache.rocketmq.remoting.protocol.RemotingCommand;
import org.apache.rocketmq.remoting.protocol.body.ConsumerRunningInfo;
import org.apache.rocketmq.tools.command.MQAdminStartup;
import org.apache.rocketmq.tools.monitor.DeleteMsgsEvent;
import org.apache.rocketmq.tools.monitor.FailedMsgs;
import org.apache.rocketmq.tools.monitor.MonitorConfig;
import org.apache.rocketmq.tools.monitor.MonitorListener;
import org.apache.rocketmq.tools.monitor.MonitorService;
import org.apache.rocketmq.tools.monitor.UndoneMsgs;

/** mqadmin's commands with their prints caught, and single requests that the client itself would refuse to send. */
final class Admin {
    private static NettyRemotingClient remoting;

    private Admin() {
    }

    static void register(Map<String, Peer.Command> commands) {
        commands.put("mqadmin", Admin::mqadmin);
        commands.put("invoke", Admin::invoke);
        commands.put("monitor", Admin::monitor);
    }

    /** One round of what startMonitoring does each minute. Answers with the names of the groups and events reported. */
    private static Object monitor(JSONObject arguments) throws Exception {
        List<String> events = Collections.synchronizedList(new ArrayList<>());
        MonitorConfig config = new MonitorConfig();
        config.setNamesrvAddr(arguments.getString("name_server"));
        MonitorService service = new MonitorService(config, new Reports(events), null);
        service.start();
        try {
            service.doMonitorWork();
        } finally {
            Hurry.through(() -> {
                service.shutdown();
                return null;
            });
        }
        return events;
    }

    /** Writes down what the monitor reports. */
    private static final class Reports implements MonitorListener {
        private final List<String> events;

        private Reports(List<String> events) {
            this.events = events;
        }

        @Override
        public void beginRound() {
            events.add("begin");
        }

        @Override
        public void reportUndoneMsgs(UndoneMsgs undone) {
            events.add("undone " + undone.getConsumerGroup() + " " + undone.getUndoneMsgsTotal());
        }

        @Override
        public void reportFailedMsgs(FailedMsgs failed) {
            events.add("failed " + failed.getConsumerGroup());
        }

        @Override
        public void reportDeleteMsgsEvent(DeleteMsgsEvent deleted) {
            events.add("deleted " + deleted);
        }

        @Override
        public void reportConsumerRunningInfo(TreeMap<String, ConsumerRunningInfo> infos) {
            infos.values().forEach(info -> info.getSubscriptionSet().forEach(one -> events.add("runs " + one.getTopic())));
        }

        @Override
        public void endRound() {
            events.add("end");
        }
    }

    /** Arguments: args (as on the command line), interrupt_after_ms for commands without end, credentials. Answers with what went to
     *  standard output and error. */
    private static synchronized Object mqadmin(JSONObject arguments) throws Exception {
        Thread worker = Thread.currentThread();
        Timer timer = new Timer(true);
        if (arguments.containsKey("interrupt_after_ms")) {
            timer.schedule(new TimerTask() {
                @Override
                public void run() {
                    worker.interrupt();
                }
            }, arguments.getLongValue("interrupt_after_ms"));
        }
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        ByteArrayOutputStream err = new ByteArrayOutputStream();
        PrintStream oldOut = System.out;
        PrintStream oldErr = System.err;
        System.setOut(new PrintStream(out, true, StandardCharsets.UTF_8));
        System.setErr(new PrintStream(err, true, StandardCharsets.UTF_8));
        try {
            Hurry.through(() -> {
                MQAdminStartup.main0(arguments.getJSONArray("args").toArray(new String[0]), Credentials.of(arguments));
                return null;
            });
        } finally {
            timer.cancel();
            System.setOut(oldOut);
            System.setErr(oldErr);
        }
        Map<String, Object> result = new LinkedHashMap<>();
        result.put("out", out.toString(StandardCharsets.UTF_8));
        result.put("err", err.toString(StandardCharsets.UTF_8));
        return result;
    }

    private static synchronized NettyRemotingClient remoting() {
        if (remoting == null) {
            remoting = new NettyRemotingClient(new NettyClientConfig());
            remoting.start();
        }
        return remoting;
    }

    /** Arguments: address, code, fields, body (base64). Answers with code, remark, fields and body (base64). */
    private static Object invoke(JSONObject arguments) throws Exception {
        RemotingCommand request = RemotingCommand.createRequestCommand(arguments.getIntValue("code"), null);
        HashMap<String, String> fields = new HashMap<>();
        arguments.getJSONObject("fields").forEach((key, value) -> fields.put(key, (String) value));
        request.setExtFields(fields);
        request.setBody(Base64.getDecoder().decode(arguments.getString("body")));
        RemotingCommand answer = remoting().invokeSync(arguments.getString("address"), request, 10_000);
        Map<String, Object> result = new LinkedHashMap<>();
        result.put("code", answer.getCode());
        result.put("remark", answer.getRemark());
        result.put("fields", answer.getExtFields());
        result.put("body", answer.getBody() == null ? null : Base64.getEncoder().encodeToString(answer.getBody()));
        return result;
    }
}
