import java.io.File;
import java.nio.file.Files;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.TopicPartition;

/** Kafka's console tools for groups, against groups of both protocols that live and that are empty. */
final class JavaGroupTools {
    static void define() {
        for (String protocol : List.of("classic", "consumer")) {
            Checks.check("kafka-consumer-groups and kafka-groups know a group of protocol " + protocol, () -> describe(protocol));
            Checks.check("kafka-console-consumer goes on where it stopped with protocol " + protocol, () -> console(protocol));
            Checks.check("kafka-verifiable-consumer commits with protocol " + protocol, () -> verifiable(protocol));
        }
        Checks.check("kafka-consumer-groups resets offsets, first for show", JavaGroupTools::reset);
        Checks.check("kafka-consumer-groups deletes offsets and groups", JavaGroupTools::delete);
        Checks.check("kafka-consumer-perf-test runs", JavaGroupTools::performance);
        Checks.check("kafka-console-consumer shows committed offsets", JavaGroupTools::offsetsTopic);
    }

    /** What the tool prints, with each run of spaces as one. */
    private static String groups(String... more) throws Exception {
        return JavaTools.run("org.apache.kafka.tools.consumer.group.ConsumerGroupCommand", "", JavaTools.with(more))
            .replaceAll("[ \\t]+", " ");
    }

    private static String listed(String... more) throws Exception {
        return JavaTools.run("org.apache.kafka.tools.GroupsCommand", "", JavaTools.with(more)).replaceAll("[ \\t]+", " ");
    }

    private static void absent(String part, String whole) {
        Checks.holds(!whole.contains(part), "<" + part + "> is in:\n" + whole);
    }

    private static void describe(String protocol) throws Exception {
        String topic = JavaGroups.filled();
        String group = topic + "-group";
        String type = protocol.equals("classic") ? "Classic" : "Consumer";
        String assignor = protocol.equals("classic") ? "range" : "uniform";
        try (GroupMember member = GroupMember.of(protocol, topic, Map.of())) {
            GroupMember.until("all records", () -> member.records.size() == 40, member);
            member.consumer.commitSync(JavaGroups.at(topic, 1, 7, ""));
            JavaTools.contains(group + " " + type + " Stable", groups("--list", "--state", "--type"));
            JavaTools.contains(group, groups("--list", "--state", "stable", "--type", protocol));
            absent(group, groups("--list", "--state", "Empty"));
            absent(group, groups("--list", "--type", protocol.equals("classic") ? "consumer" : "classic"));
            String told = groups("--describe", "--group", group);
            String id = member.consumer.groupMetadata().memberId();
            JavaTools.contains(topic + " 1 7 10 3 " + id + " /127.0.0.1 member", told);
            JavaTools.contains(topic + " 0 - 10 - " + id + " /127.0.0.1 member", told);
            JavaTools.contains(" member 4 ", groups("--describe", "--group", group, "--members") + " ");
            JavaTools.contains(topic + ":0,1,2,3", groups("--describe", "--group", group, "--members", "--verbose"));
            JavaTools.contains(" (1) " + assignor + " Stable 1", groups("--describe", "--group", group, "--state"));
            JavaTools.contains(group + " " + type + " consumer", listed("--list"));
            JavaTools.contains(group, listed("--list", "--group-type", protocol));
            JavaTools.contains(group, listed("--list", "--consumer"));
        }
        GroupMember.until("empty", () -> JavaGroups.empty(group));
        JavaTools.contains(group + " Empty", groups("--list", "--state"));
        JavaTools.contains("has no active members", groups("--describe", "--group", group));
        JavaTools.contains(topic + " 1 7 10 3 - - -", groups("--describe", "--all-groups"));
    }

    private static void reset() throws Exception {
        String topic = JavaGroups.filled();
        String group = topic + "-group";
        String[] all = {"--reset-offsets", "--group", group, "--topic", topic};
        try (GroupMember member = GroupMember.of("classic", topic, Map.of())) {
            GroupMember.until("all records", () -> member.records.size() == 40, member);
            member.consumer.commitSync();
            JavaTools.contains("inactive, but the current state is Stable", groups(with(all, "--to-earliest", "--execute")));
        }
        JavaTools.contains(group + " " + topic + " 2 0", groups(with(all, "--to-earliest", "--dry-run")));
        expect(group, topic, 10, 10);
        groups(with(all, "--to-earliest", "--execute"));
        expect(group, topic, 0, 0);
        groups("--reset-offsets", "--group", group, "--topic", topic + ":1", "--to-offset", "4", "--execute");
        expect(group, topic, 0, 4);
        groups(with(all, "--shift-by", "3", "--execute"));
        expect(group, topic, 3, 7);
        groups(with(all, "--by-duration", "PT1H", "--execute"));
        expect(group, topic, 0, 0);
        groups(with(all, "--to-datetime", "2000-01-01T00:00:00.000", "--execute"));
        expect(group, topic, 0, 0);
        groups("--reset-offsets", "--group", group, "--all-topics", "--to-latest", "--execute");
        expect(group, topic, 10, 10);
        File plan = File.createTempFile("plan", ".csv");
        Files.writeString(plan.toPath(), topic + ",0,2\n" + topic + ",1,3\n");
        groups("--reset-offsets", "--group", group, "--from-file", plan.getPath(), "--execute");
        expect(group, topic, 2, 3);
        JavaTools.contains(topic + ",1,3", groups("--reset-offsets", "--group", group, "--all-topics", "--to-current", "--export", "--dry-run"));
        Files.delete(plan.toPath());
    }

    private static void delete() throws Exception {
        String topic = JavaGroups.filled();
        String group = topic + "-group";
        try (GroupMember member = GroupMember.of("consumer", topic, Map.of())) {
            GroupMember.until("all records", () -> member.records.size() == 40, member);
            member.consumer.commitSync();
            JavaTools.contains("NonEmptyGroup", groups("--delete", "--group", group).replace("GroupNotEmpty", "NonEmptyGroup"));
            JavaTools.contains(topic + " 1 Error", groups("--delete-offsets", "--group", group, "--topic", topic + ":1"));
        }
        GroupMember.until("empty", () -> JavaGroups.empty(group));
        JavaTools.contains(topic + " 1 Successful", groups("--delete-offsets", "--group", group, "--topic", topic + ":1"));
        Checks.same(3, JavaAdmin.ADMIN.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata().get().size());
        JavaTools.contains("was successful", groups("--delete", "--group", group));
        absent(group, groups("--list"));
    }

    private static void console(String protocol) throws Exception {
        String topic = JavaGroups.filled();
        String tool = "org.apache.kafka.tools.consumer.ConsoleConsumer";
        String[] arguments = {
            "--topic", topic, "--group", topic + "-group", "--timeout-ms", "15000", "--max-messages", "15",
            "--command-property", "group.protocol=" + protocol, "--command-property", "auto.offset.reset=earliest"};
        String printed = JavaTools.run(tool, "", JavaTools.with(arguments));
        arguments[7] = "25";
        printed += JavaTools.run(tool, "", JavaTools.with(arguments));
        Checks.same(40L, printed.lines().filter(line -> line.startsWith("v")).distinct().count());
    }

    private static void verifiable(String protocol) throws Exception {
        String topic = JavaGroups.filled();
        String printed = JavaTools.run("org.apache.kafka.tools.VerifiableConsumer", "",
            "--bootstrap-server", Checks.bootstrap, "--topic", topic, "--group-id", topic + "-group",
            "--group-protocol", protocol, "--reset-policy", "earliest", "--max-messages", "40");
        JavaTools.contains("\"name\":\"partitions_assigned\"", printed);
        JavaTools.contains("\"success\":true", printed);
        JavaTools.contains("shutdown_complete", printed);
        expect(topic + "-group", topic, 10, 10);
    }

    private static void performance() throws Exception {
        String topic = JavaGroups.filled();
        String printed = JavaTools.run("org.apache.kafka.tools.ConsumerPerformance", "",
            JavaTools.with("--topic", topic, "--num-records", "40", "--timeout", "15000"));
        JavaTools.contains(", 40, ", printed);
    }

    private static void offsetsTopic() throws Exception {
        String topic = JavaGroups.filled();
        try (GroupMember member = GroupMember.of("classic", topic, Map.of())) {
            GroupMember.until("all records", () -> member.records.size() == 40, member);
            member.consumer.commitSync();
        }
        String printed = JavaTools.run("org.apache.kafka.tools.consumer.ConsoleConsumer", "",
            JavaTools.with("--topic", "__consumer_offsets", "--from-beginning", "--timeout-ms", "700",
                "--formatter", "org.apache.kafka.tools.consumer.OffsetsMessageFormatter"));
        JavaTools.contains("\"topic\":\"" + topic + "\",\"partition\":3", printed);
        printed = JavaTools.run("org.apache.kafka.tools.consumer.ConsoleConsumer", "",
            JavaTools.with("--topic", "__consumer_offsets", "--from-beginning", "--timeout-ms", "700",
                "--formatter", "org.apache.kafka.tools.consumer.GroupMetadataMessageFormatter"));
        JavaTools.contains("\"group\":\"" + topic + "-group\"", printed);
    }

    private static void expect(String group, String topic, long first, long second) throws Exception {
        var found = JavaAdmin.ADMIN.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata().get();
        Checks.same(first, found.get(new TopicPartition(topic, 0)).offset());
        Checks.same(second, found.get(new TopicPartition(topic, 1)).offset());
    }

    private static String[] with(String[] some, String... more) {
        String[] all = java.util.Arrays.copyOf(some, some.length + more.length);
        System.arraycopy(more, 0, all, some.length, more.length);
        return all;
    }
}
