import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.File;
import java.io.InputStream;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.utils.Exit;

/** Kafka's console tools, through their own main methods, with their exits and output caught. */
final class JavaTools {
    static final class Exited extends RuntimeException {
        Exited(int status) {
            super("exit status " + status);
        }
    }

    static void define() {
        Checks.check("kafka-topics creates, lists, describes, alters and deletes", JavaTools::topics);
        Checks.check("kafka-configs describes and alters a topic", JavaTools::configs);
        Checks.check("kafka-console-producer and kafka-console-consumer meet", JavaTools::console);
        Checks.check("kafka-get-offsets counts", JavaTools::offsets);
        Checks.check("kafka-delete-records deletes", JavaTools::deleteRecords);
        Checks.check("kafka-log-dirs describes", JavaTools::logDirs);
        Checks.check("kafka-producer-perf-test runs", JavaTools::performance);
        Checks.check("kafka-verifiable-producer runs", JavaTools::verifiable);
        Checks.check("kafka-broker-api-versions understands every range", JavaTools::apiVersions);
        Checks.check("kafka-cluster tells the cluster id", JavaTools::clusterId);
        Checks.check("kafka-features describes", JavaTools::features);
    }

    static String run(String tool, String input, String... arguments) throws Exception {
        PrintStream out = System.out;
        PrintStream err = System.err;
        InputStream in = System.in;
        ByteArrayOutputStream printed = new ByteArrayOutputStream();
        PrintStream caught = new PrintStream(printed, true, StandardCharsets.UTF_8);
        List<Runnable> hooks = new ArrayList<>();
        List<Integer> statuses = new ArrayList<>();  // A tool may catch the first exit and exit again.
        Exit.setExitProcedure((status, message) -> {
            statuses.add(status);
            throw new Exited(status);
        });
        Exit.setShutdownHookAdder((name, hook) -> hooks.add(hook));
        System.setOut(caught);
        System.setErr(caught);
        System.setIn(new ByteArrayInputStream(input.getBytes(StandardCharsets.UTF_8)));
        try {
            Class.forName(tool).getMethod("main", String[].class).invoke(null, (Object) arguments);
        } catch (InvocationTargetException thrown) {
            if (!(thrown.getCause() instanceof Exited)) {
                throw thrown;
            }
            Checks.holds(statuses.get(0) == 0, tool + " failed:\n" + printed.toString(StandardCharsets.UTF_8));
        } finally {
            hooks.forEach(Runnable::run);
            System.setOut(out);
            System.setErr(err);
            System.setIn(in);
        }
        return printed.toString(StandardCharsets.UTF_8);
    }

    private static String topicCommand(String... more) throws Exception {
        String printed = run("org.apache.kafka.tools.TopicCommand", "", with(more));
        JavaAdmin.settle();
        return printed;
    }

    static String[] with(String... more) {
        String[] all = new String[more.length + 2];
        all[0] = "--bootstrap-server";
        all[1] = Checks.bootstrap;
        System.arraycopy(more, 0, all, 2, more.length);
        return all;
    }

    static void contains(String part, String whole) {
        Checks.holds(whole.contains(part), "no <" + part + "> in:\n" + whole);
    }

    private static void topics() throws Exception {
        String topic = Checks.newTopic();
        topicCommand("--create", "--topic", topic, "--partitions", "2", "--replication-factor", "1", "--config", "retention.ms=5000");
        contains(topic, topicCommand("--list"));
        String described = topicCommand("--describe", "--topic", topic);
        contains("PartitionCount: 2", described);
        contains("retention.ms=5000", described);
        contains("Leader: 1", described);
        topicCommand("--alter", "--topic", topic, "--partitions", "4");
        contains("PartitionCount: 4", topicCommand("--describe", "--topic", topic));
        topicCommand("--delete", "--topic", topic);
        Checks.holds(!topicCommand("--list").contains(topic), "it is still listed");
    }

    private static void configs() throws Exception {
        String topic = JavaAdmin.create(1, Map.of());
        String tool = "kafka.admin.ConfigCommand";
        run(tool, "", with("--alter", "--entity-type", "topics", "--entity-name", topic, "--add-config", "retention.ms=9999"));
        JavaAdmin.settle();
        contains("retention.ms=9999", run(tool, "", with("--describe", "--entity-type", "topics", "--entity-name", topic)));
        run(tool, "", with("--alter", "--entity-type", "topics", "--entity-name", topic, "--delete-config", "retention.ms"));
        contains("segment.bytes=1073741824",
            run(tool, "", with("--describe", "--all", "--entity-type", "topics", "--entity-name", topic)));
        contains("log.segment.bytes=1073741824",
            run(tool, "", with("--describe", "--all", "--entity-type", "brokers", "--entity-name", "1")));
    }

    private static void console() throws Exception {
        String topic = JavaAdmin.create(1, Map.of());
        run("org.apache.kafka.tools.ConsoleProducer", "k1:one\nk2:two\n",
            with("--topic", topic, "--reader-property", "parse.key=true", "--reader-property", "key.separator=:"));
        String printed = run("org.apache.kafka.tools.consumer.ConsoleConsumer", "",
            with("--topic", topic, "--partition", "0", "--offset", "earliest", "--max-messages", "2",
                "--timeout-ms", "15000", "--formatter-property", "print.key=true"));
        contains("k1\tone", printed);
        contains("k2\ttwo", printed);
    }

    private static void offsets() throws Exception {
        String topic = JavaAdmin.create(2, Map.of());
        JavaClients.send(topic, 7, Map.of());
        String printed = run("org.apache.kafka.tools.GetOffsetShell", "", with("--topic", topic));
        contains(topic + ":0:7", printed);
        contains(topic + ":1:0", printed);
    }

    private static void deleteRecords() throws Exception {
        String topic = JavaAdmin.create(1, Map.of());
        JavaClients.send(topic, 7, Map.of());
        File file = File.createTempFile("offsets", ".json");
        Files.writeString(file.toPath(),
            "{\"version\": 1, \"partitions\": [{\"topic\": \"" + topic + "\", \"partition\": 0, \"offset\": 3}]}");
        contains("low_watermark: 3", run("org.apache.kafka.tools.DeleteRecordsCommand", "",
            with("--offset-json-file", file.getPath())));
        Files.delete(file.toPath());
    }

    private static void logDirs() throws Exception {
        String topic = JavaAdmin.create(1, Map.of());
        JavaClients.send(topic, 1, Map.of());
        String printed = run("org.apache.kafka.tools.LogDirsCommand", "", with("--describe", "--topic-list", topic));
        contains("\"partition\":\"" + topic + "-0\"", printed);
    }

    private static void performance() throws Exception {
        String topic = JavaAdmin.create(1, Map.of());
        contains("2000 records sent", run("org.apache.kafka.tools.ProducerPerformance", "", "--topic", topic,
            "--num-records", "2000", "--record-size", "100", "--throughput", "-1",
            "--command-property", "bootstrap.servers=" + Checks.bootstrap));
    }

    private static void verifiable() throws Exception {
        String topic = JavaAdmin.create(1, Map.of());
        run("org.apache.kafka.tools.VerifiableProducer", "",
            "--bootstrap-server", Checks.bootstrap, "--topic", topic, "--max-messages", "50");
        try (KafkaConsumer<String, String> consumer = JavaClients.consumer(Map.of())) {
            consumer.assign(List.of(new TopicPartition(topic, 0)));
            Checks.same("49", JavaClients.take(consumer, 50).get(49).value());
        }
    }

    private static void apiVersions() throws Exception {
        String printed = run("org.apache.kafka.tools.BrokerApiVersionsCommand", "", with());
        contains("Produce(0): 0 to 13 [usable: 13]", printed);
        contains("Fetch(1): 4 to 18 [usable: 18]", printed);
    }

    private static void clusterId() throws Exception {
        contains("Cluster ID: ", run("org.apache.kafka.tools.ClusterTool", "", "cluster-id", "--bootstrap-server", Checks.bootstrap));
    }

    private static void features() throws Exception {
        contains("metadata.version", run("org.apache.kafka.tools.FeatureCommand", "", "--bootstrap-server", Checks.bootstrap, "describe"));
    }
}
