import com.alibaba.fastjson.JSONArray;
import com.alibaba.fastjson.JSONObject;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import org.apache.rocketmq.client.consumer.AllocateMessageQueueStrategy;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMachineRoomNearby;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragely;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragelyByCircle;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueByMachineRoom;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueConsistentHash;
import org.apache.rocketmq.common.message.MessageQueue;

/** Who gets which queues by Apache's strategies; the machine room of a broker or client is what stands before its "@". */
final class Allocations {
    private Allocations() {
    }

    static void register(Map<String, Peer.Command> commands) {
        commands.put("allocate", Allocations::all);
    }

    /** Arguments: cases, each with strategy, topic, queues ([broker, id]), ids, rooms, nodes. Answers with [broker, id] by client. */
    private static Object all(JSONObject arguments) {
        List<Object> answers = new ArrayList<>();
        for (Object one : arguments.getJSONArray("cases")) {
            answers.add(one((JSONObject) one));
        }
        return answers;
    }

    private static Object one(JSONObject asked) {
        List<MessageQueue> queues = new ArrayList<>();
        for (Object queue : asked.getJSONArray("queues")) {
            JSONArray pair = (JSONArray) queue;
            queues.add(new MessageQueue(asked.getString("topic"), pair.getString(0), pair.getIntValue(1)));
        }
        List<String> ids = asked.getJSONArray("ids").toJavaList(String.class);
        Collections.sort(queues);
        Collections.sort(ids);
        List<Object> shares = new ArrayList<>();
        for (String id : ids) {
            List<Object> own = new ArrayList<>();
            for (MessageQueue queue : strategy(asked).allocate("group", id, queues, ids)) {
                own.add(List.of(queue.getBrokerName(), queue.getQueueId()));
            }
            shares.add(List.of(id, own));
        }
        return shares;
    }

    private static AllocateMessageQueueStrategy strategy(JSONObject asked) {
        switch (asked.getString("strategy")) {
            case "AVG":
                return new AllocateMessageQueueAveragely();
            case "AVG_BY_CIRCLE":
                return new AllocateMessageQueueAveragelyByCircle();
            case "MACHINE_ROOM":
                AllocateMessageQueueByMachineRoom rooms = new AllocateMessageQueueByMachineRoom();
                rooms.setConsumeridcs(new HashSet<>(asked.getJSONArray("rooms").toJavaList(String.class)));
                return rooms;
            case "CONSISTENT_HASH":
                return new AllocateMessageQueueConsistentHash(asked.getIntValue("nodes"));
            case "MACHINE_ROOM_NEARBY":
                return new AllocateMachineRoomNearby(new AllocateMessageQueueAveragely(), new Rooms());
            default:
                throw new IllegalArgumentException(asked.getString("strategy"));
        }
    }

    private static final class Rooms implements AllocateMachineRoomNearby.MachineRoomResolver {
        @Override
        public String brokerDeployIn(MessageQueue queue) {
            return queue.getBrokerName().split("@")[0];
        }

        @Override
        public String consumerDeployIn(String id) {
            return id.split("@")[0];
        }
    }
}
