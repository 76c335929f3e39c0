import com.alibaba.fastjson.JSONObject;
import org.apache.rocketmq.client.ClientConfig;

/** Settings that all kinds of clients have, as far as a command names them: namespace, trace (a topic to write traces to). */
final class Settings {
    private Settings() {
    }

    static void apply(ClientConfig client, JSONObject arguments) {
        if (arguments.containsKey("namespace")) {
            client.setNamespace(arguments.getString("namespace"));
        }
        if (arguments.containsKey("trace")) {
            client.setEnableTrace(true);
            client.setTraceTopic(arguments.getString("trace"));
        }
    }
}
