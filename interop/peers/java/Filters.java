import com.alibaba.fastjson.JSON;
import com.alibaba.fastjson.JSONArray;
import com.alibaba.fastjson.JSONObject;
import com.alibaba.fastjson.serializer.SerializerFeature;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Base64;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.rocketmq.broker.filter.ConsumerFilterManager;
import org.apache.rocketmq.broker.filter.MessageEvaluationContext;
import org.apache.rocketmq.filter.expression.Expression;
import org.apache.rocketmq.filter.parser.SelectorParser;
import org.apache.rocketmq.filter.util.BitsArray;
import org.apache.rocketmq.filter.util.BloomFilter;

/**
 * Apache's filter classes behind JSON lines, without any server.
 *
 * {"id", "do": "evaluate", "cases": [{"expression", "messages": [{NAME: VALUE}]}]} answers for each case a list with
 * "true", "false", "null", "error" or "other" for each message, or null where the expression does not compile.
 * {"id", "do": "bloom", "error_rate", "consumers", "texts"} answers the filter's k and m, each text's positions, and
 * the bits of all texts in base64.
 * {"id", "do": "write_table", "filters"} answers the text of consumerFilter.json, {"id", "do": "read_table", "text"} the
 * filters that Apache takes from such a text.
 */
public final class Filters {
    private Filters() {
    }

    public static void main(String[] args) throws Exception {
        PrintStream out = new PrintStream(System.out, true, "UTF-8");
        System.setOut(System.err);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            JSONObject request = JSON.parseObject(line);
            JSONObject reply = new JSONObject();
            reply.put("id", request.get("id"));
            reply.put("result", result(request));
            out.println(JSON.toJSONString(reply, SerializerFeature.WriteMapNullValue));
        }
    }

    private static Object result(JSONObject request) {
        switch (request.getString("do")) {
            case "bloom":
                return bloom(request);
            case "write_table":
                return writtenTable(request.getJSONArray("filters"));
            case "read_table":
                return readTable(request.getString("text"));
            default:
                return evaluate(request.getJSONArray("cases"));
        }
    }

    /** consumerFilter.json as Apache writes it, for a bloom filter of 20 % and 64 groups. */
    private static String writtenTable(JSONArray filters) {
        ConsumerFilterManager manager = new ConsumerFilterManager();
        for (int i = 0; i < filters.size(); i++) {
            JSONObject one = filters.getJSONObject(i);
            manager.register(one.getString("topic"), one.getString("group"), one.getString("expression"), "SQL92",
                one.getLongValue("version"));
        }
        return manager.encode(true);
    }

    /** What Apache takes from a consumerFilter.json: topic, group, expression and version of each filter that compiles. */
    private static List<Object> readTable(String text) {
        ConsumerFilterManager manager = new ConsumerFilterManager();
        manager.decode(text);
        List<Object> found = new ArrayList<>();
        manager.getFilterDataByTopic().forEach((topic, groups) -> groups.getGroupFilterData().forEach((group, data) -> {
            if (data.getCompiledExpression() != null && manager.getBloomFilter().isValid(data.getBloomFilterData())) {
                JSONObject one = new JSONObject();
                one.put("topic", data.getTopic());
                one.put("group", data.getConsumerGroup());
                one.put("expression", data.getExpression());
                one.put("version", data.getClientVersion());
                found.add(one);
            }
        }));
        return found;
    }

    private static List<Object> evaluate(JSONArray cases) {
        List<Object> answers = new ArrayList<>();
        for (int i = 0; i < cases.size(); i++) {
            JSONObject one = cases.getJSONObject(i);
            answers.add(answer(one.getString("expression"), one.getJSONArray("messages")));
        }
        return answers;
    }

    private static List<String> answer(String text, JSONArray messages) {
        Expression expression;
        try {
            expression = SelectorParser.parse(text);
        } catch (Throwable refused) {
            return null;
        }
        List<String> results = new ArrayList<>();
        for (int i = 0; i < messages.size(); i++) {
            Map<String, String> properties = new HashMap<>();
            messages.getJSONObject(i).forEach((name, value) -> properties.put(name, (String) value));
            results.add(result(expression, properties));
        }
        return results;
    }

    private static String result(Expression expression, Map<String, String> properties) {
        try {
            Object value = expression.evaluate(new MessageEvaluationContext(properties));
            return value == null || value instanceof Boolean ? String.valueOf(value) : "other";
        } catch (Throwable failed) {
            return "error";
        }
    }

    private static JSONObject bloom(JSONObject request) {
        BloomFilter filter = BloomFilter.createByFn(request.getIntValue("error_rate"), request.getIntValue("consumers"));
        BitsArray bits = BitsArray.create(filter.getM());
        List<int[]> positions = new ArrayList<>();
        for (Object text : request.getJSONArray("texts")) {
            positions.add(filter.calcBitPositions((String) text));
            filter.hashTo((String) text, bits);
        }
        JSONObject result = new JSONObject();
        result.put("k", filter.getK());
        result.put("m", filter.getM());
        result.put("positions", positions);
        result.put("bits", Base64.getEncoder().encodeToString(bits.bytes()));
        return result;
    }
}
