import com.alibaba.fastjson.JSONObject;
import org.apache.rocketmq.client.ClientConfig;

/** Settings that all kinds of clients have, as far as a command names them: namespace, trace (a topic to write traces to), unit
 * (whether it belongs to one), poll_ms (how often it asks for routes). */
final class Settings {
    private Settings() {
    }

    static void apply(ClientConfig client, JSONObject arguments) {
        if (arguments.containsKey("namespace")) {
            client.setNamespace(arguments.getString("namespace"));
        }
        client.setMqClientApiTimeout(20_000);  // a busy machine may need more than the three seconds of the default
        if (arguments.containsKey("poll_ms")) {
            client.setPollNameServerInterval(arguments.getIntValue("poll_ms"));
        }
        client.setUnitMode(arguments.getBooleanValue("unit"));
        if (arguments.containsKey("trace")) {
            client.setEnableTrace(true);
            client.setTraceTopic(arguments.getString("trace"));
        }
    }
}
