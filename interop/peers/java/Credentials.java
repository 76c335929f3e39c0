import com.alibaba.fastjson.JSONObject;
import org.apache.rocketmq.acl.common.AclClientRPCHook;
import org.apache.rocketmq.acl.common.SessionCredentials;
import org.apache.rocketmq.remoting.RPCHook;

/** Who a client says it is: access_key and secret_key of a command, where it has them. */
final class Credentials {
    private Credentials() {
    }

    /** What signs the client's requests; null where nobody is named. */
    static RPCHook of(JSONObject arguments) {
        if (!arguments.containsKey("access_key")) {
            return null;
        }
        return new AclClientRPCHook(new SessionCredentials(arguments.getString("access_key"), arguments.getString("secret_key")));
    }
}
