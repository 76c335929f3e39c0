import com.alibaba.fastjson.JSONObject;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.rocketmq.client.producer.LocalTransactionState;
import org.apache.rocketmq.client.producer.TransactionListener;
import org.apache.rocketmq.client.producer.TransactionMQProducer;
import org.apache.rocketmq.client.producer.TransactionSendResult;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;

/** Transactional producers: what they decide stands in the message's own properties `local` and `check`. */
final class Transactions {
    private static final Map<String, TransactionMQProducer> PRODUCERS = new ConcurrentHashMap<>();

    private Transactions() {
    }

    static void register(Map<String, Peer.Command> commands) {
        commands.put("transaction_producer", Transactions::start);
        commands.put("send_in_transaction", Transactions::send);
    }

    /** Arguments: name, name_server, group. Each check of a transaction becomes an event. */
    private static Object start(JSONObject arguments) throws Exception {
        String name = arguments.getString("name");
        TransactionMQProducer producer = new TransactionMQProducer(arguments.getString("group"));
        producer.setNamesrvAddr(arguments.getString("name_server"));
        producer.setInstanceName(name);
        producer.setSendMsgTimeout(Producers.PATIENCE_MS);
        producer.setTransactionListener(new TransactionListener() {
            @Override
            public LocalTransactionState executeLocalTransaction(Message message, Object argument) {
                return state(message.getUserProperty("local"));
            }

            @Override
            public LocalTransactionState checkLocalTransaction(MessageExt message) {
                Peer.event("check", name, Consumers.describe(message));
                return state(message.getUserProperty("check"));
            }
        });
        producer.start();
        PRODUCERS.put(name, producer);
        Peer.STARTED.put(name, () -> {
            PRODUCERS.remove(name);
            producer.shutdown();
        });
        return name;
    }

    private static LocalTransactionState state(String word) {
        if ("commit".equals(word)) {
            return LocalTransactionState.COMMIT_MESSAGE;
        }
        return "rollback".equals(word) ? LocalTransactionState.ROLLBACK_MESSAGE : LocalTransactionState.UNKNOW;
    }

    private static Object send(JSONObject arguments) throws Exception {
        TransactionMQProducer producer = PRODUCERS.get(arguments.getString("producer"));
        TransactionSendResult sent = producer.sendMessageInTransaction(Producers.message(arguments), null);
        Map<String, Object> result = new LinkedHashMap<>();
        result.put("status", sent.getSendStatus().name());
        result.put("msg_id", sent.getMsgId());
        result.put("queue_id", sent.getMessageQueue().getQueueId());
        result.put("transaction_id", sent.getTransactionId());
        result.put("local_state", sent.getLocalTransactionState().name());
        return result;
    }
}
