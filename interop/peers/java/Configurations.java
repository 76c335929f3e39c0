import com.alibaba.fastjson.JSONObject;
import java.io.StringReader;
import java.lang.reflect.Method;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import org.apache.rocketmq.auth.config.AuthConfig;
import org.apache.rocketmq.common.BrokerConfig;
import org.apache.rocketmq.common.MixAll;
import org.apache.rocketmq.remoting.netty.NettyClientConfig;
import org.apache.rocketmq.remoting.netty.NettyServerConfig;
import org.apache.rocketmq.store.config.MessageStoreConfig;

/** The values that Apache's broker acts by when it reads a configuration file. */
final class Configurations {
    private Configurations() {
    }

    static void register(Map<String, Peer.Command> commands) {
        commands.put("configuration", Configurations::read);
    }

    /** Argument: text, a properties file. Answers with property -> value, as the getters of the configuration classes return it. */
    private static Object read(JSONObject arguments) throws Exception {
        Properties properties = new Properties();
        properties.load(new StringReader(arguments.getString("text")));
        NettyServerConfig server = new NettyServerConfig();
        server.setListenPort(10911);
        Object[] configurations = {
            new BrokerConfig(), server, new NettyClientConfig(), new MessageStoreConfig(), new AuthConfig(),
        };
        Map<String, String> values = new TreeMap<>();
        for (Object one : configurations) {
            MixAll.properties2Object(properties, one);
            for (Method method : one.getClass().getMethods()) {
                String key = property(method);
                if (key != null && method.invoke(one) != null) {
                    values.put(key, String.valueOf(method.invoke(one)));
                }
            }
        }
        return values;
    }

    /** The property that a getter returns; null where the method is none. */
    private static String property(Method method) {
        String name = method.getName();
        int prefix = name.startsWith("get") ? 3 : name.startsWith("is") ? 2 : 0;
        if (prefix == 0 || name.length() == prefix || method.getParameterCount() > 0 || name.equals("getClass")) {
            return null;
        }
        return Character.toLowerCase(name.charAt(prefix)) + name.substring(prefix + 1);
    }
}
