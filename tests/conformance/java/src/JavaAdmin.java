import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.AlterConfigOp.OpType;
import org.apache.kafka.clients.admin.Config;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.ConfigEntry.ConfigSource;
import org.apache.kafka.clients.admin.CreateTopicsOptions;
import org.apache.kafka.clients.admin.CreateTopicsResult;
import org.apache.kafka.clients.admin.DescribeConfigsOptions;
import org.apache.kafka.clients.admin.DescribeTopicsOptions;
import org.apache.kafka.clients.admin.FeatureMetadata;
import org.apache.kafka.clients.admin.LogDirDescription;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.admin.TopicDescription;
import org.apache.kafka.common.KafkaFuture;
import org.apache.kafka.common.TopicCollection;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.errors.InvalidConfigurationException;
import org.apache.kafka.common.errors.InvalidPartitionsException;
import org.apache.kafka.common.errors.InvalidReplicaAssignmentException;
import org.apache.kafka.common.errors.TopicExistsException;
import org.apache.kafka.common.errors.UnknownTopicIdException;
import org.apache.kafka.common.errors.UnknownTopicOrPartitionException;

/** The Java admin client. */
final class JavaAdmin {
    static final Admin ADMIN = Admin.create(Map.of("bootstrap.servers", Checks.bootstrap));

    static void define() {
        Checks.check("topics are created, described by name and id, and deleted by id", JavaAdmin::topicLife);
        Checks.check("a description of many partitions comes in pages", JavaAdmin::pages);
        Checks.check("a new topic answers with its configs and id", JavaAdmin::creationAnswer);
        Checks.check("manual assignments are obeyed or refused", JavaAdmin::assignments);
        Checks.check("partitions are added", JavaAdmin::partitions);
        Checks.check("topic configs are set, appended, subtracted and deleted", JavaAdmin::topicConfigs);
        Checks.check("every config has a type, documentation and synonyms", JavaAdmin::documentation);
        Checks.check("broker configs are set for one broker and for all", JavaAdmin::brokerConfigs);
        Checks.check("records are deleted", JavaAdmin::deleteRecords);
        Checks.check("offsets are listed by every spec", JavaAdmin::listOffsets);
        Checks.check("the cluster is described", JavaAdmin::cluster);
        Checks.check("log directories are described", JavaAdmin::logDirs);
        Checks.check("features are described", JavaAdmin::features);
    }

    static String create(int partitions, Map<String, String> configs) throws Exception {
        String topic = Checks.newTopic();
        ADMIN.createTopics(List.of(new NewTopic(topic, partitions, (short) 1).configs(configs))).all().get();
        describe(topic, partitions);
        return topic;
    }

    static void fails(Class<? extends Exception> expected, KafkaFuture<?> future) throws Exception {
        try {
            future.get();
        } catch (ExecutionException thrown) {
            Checks.same(expected, thrown.getCause().getClass());
            return;
        }
        throw new AssertionError("expected " + expected.getSimpleName());
    }

    /** Apache Kafka may confirm a change before its broker has seen it: this waits until it has. */
    static void settle() throws Exception {
        if (!Checks.isKafka) {
            return;
        }
        long decided = ADMIN.describeMetadataQuorum().quorumInfo().get().highWatermark() - 1;
        long deadline = System.nanoTime() + 20_000_000_000L;
        while (ADMIN.describeFeatures().featureMetadata().get().finalizedFeaturesEpoch().orElse(-1L) < decided) {
            Checks.holds(System.nanoTime() < deadline, "the broker does not follow its controller");
            Thread.sleep(10);
        }
    }

    private static TopicDescription describe(String topic, int partitions) throws Exception {
        settle();
        TopicDescription found = ADMIN.describeTopics(List.of(topic)).allTopicNames().get().get(topic);
        Checks.same(partitions, found.partitions().size());
        return found;
    }

    private static void topicLife() throws Exception {
        String topic = create(3, Map.of());
        TopicDescription description = describe(topic, 3);
        Uuid id = description.topicId();
        Checks.same(1, description.partitions().get(0).leader().id());
        Checks.same(1, description.partitions().get(0).isr().size());
        Checks.same(List.of(), description.partitions().get(0).elr());
        Checks.same(topic, ADMIN.describeTopics(TopicCollection.ofTopicIds(List.of(id))).allTopicIds().get().get(id).name());
        Checks.holds(ADMIN.listTopics().names().get().contains(topic), "it is not listed");
        fails(TopicExistsException.class, ADMIN.createTopics(List.of(new NewTopic(topic, 1, (short) 1))).all());
        ADMIN.deleteTopics(TopicCollection.ofTopicIds(List.of(id))).all().get();
        settle();
        fails(UnknownTopicOrPartitionException.class, ADMIN.describeTopics(List.of(topic)).allTopicNames());
        fails(UnknownTopicIdException.class, ADMIN.deleteTopics(TopicCollection.ofTopicIds(List.of(id))).all());
        fails(UnknownTopicOrPartitionException.class, ADMIN.deleteTopics(List.of(topic)).all());
    }

    private static void pages() throws Exception {
        String topic = create(25, Map.of());
        DescribeTopicsOptions options = new DescribeTopicsOptions().partitionSizeLimitPerResponse(10);
        Checks.same(25, ADMIN.describeTopics(List.of(topic), options).allTopicNames().get().get(topic).partitions().size());
    }

    private static void creationAnswer() throws Exception {
        String topic = Checks.newTopic();
        NewTopic asked = new NewTopic(topic, Optional.empty(), Optional.empty()).configs(Map.of("retention.ms", "77"));
        CreateTopicsResult checked = ADMIN.createTopics(List.of(asked), new CreateTopicsOptions().validateOnly(true));
        checked.all().get();
        Checks.holds(!ADMIN.listTopics().names().get().contains(topic), "validate-only created it");
        CreateTopicsResult made = ADMIN.createTopics(List.of(asked));
        Checks.same(1, made.numPartitions(topic).get());
        Checks.same(1, made.replicationFactor(topic).get());
        Checks.same("77", made.config(topic).get().get("retention.ms").value());
        Checks.same(describe(topic, 1).topicId(), made.topicId(topic).get());
    }

    private static void assignments() throws Exception {
        String topic = Checks.newTopic();
        ADMIN.createTopics(List.of(new NewTopic(topic, Map.of(0, List.of(1), 1, List.of(1))))).all().get();
        describe(topic, 2);
        String refused = Checks.newTopic();
        fails(InvalidReplicaAssignmentException.class,
            ADMIN.createTopics(List.of(new NewTopic(refused, Map.of(0, List.of(99))))).all());
        fails(InvalidReplicaAssignmentException.class,
            ADMIN.createTopics(List.of(new NewTopic(refused, Map.of(0, List.of(1, 1))))).all());
        fails(InvalidReplicaAssignmentException.class,
            ADMIN.createTopics(List.of(new NewTopic(refused, Map.of(1, List.of(1))))).all());
    }

    private static void partitions() throws Exception {
        String topic = create(1, Map.of());
        ADMIN.createPartitions(Map.of(topic, NewPartitions.increaseTo(3))).all().get();
        describe(topic, 3);
        ADMIN.createPartitions(Map.of(topic, NewPartitions.increaseTo(4, List.of(List.of(1))))).all().get();
        describe(topic, 4);
        fails(InvalidPartitionsException.class, ADMIN.createPartitions(Map.of(topic, NewPartitions.increaseTo(2))).all());
        fails(InvalidReplicaAssignmentException.class,
            ADMIN.createPartitions(Map.of(topic, NewPartitions.increaseTo(5, List.of(List.of(99))))).all());
        fails(UnknownTopicOrPartitionException.class,
            ADMIN.createPartitions(Map.of("no-such-topic", NewPartitions.increaseTo(2))).all());
    }

    private static Config config(ConfigResource resource) throws Exception {
        return ADMIN.describeConfigs(List.of(resource)).all().get().get(resource);
    }

    private static KafkaFuture<Void> alter(ConfigResource resource, String key, String value, OpType operation) {
        return ADMIN.incrementalAlterConfigs(
            Map.of(resource, List.of(new AlterConfigOp(new ConfigEntry(key, value), operation)))).all();
    }

    private static void change(ConfigResource resource, String key, String value, OpType operation) throws Exception {
        alter(resource, key, value, operation).get();
        settle();
    }

    private static void topicConfigs() throws Exception {
        ConfigResource resource = new ConfigResource(ConfigResource.Type.TOPIC, create(1, Map.of()));
        change(resource, "cleanup.policy", "compact", OpType.APPEND);
        Checks.same("delete,compact", config(resource).get("cleanup.policy").value());
        change(resource, "cleanup.policy", "delete", OpType.SUBTRACT);
        Checks.same("compact", config(resource).get("cleanup.policy").value());
        change(resource, "cleanup.policy", null, OpType.DELETE);
        Checks.same("delete", config(resource).get("cleanup.policy").value());
        Checks.same(ConfigSource.DEFAULT_CONFIG, config(resource).get("cleanup.policy").source());
        fails(InvalidConfigurationException.class, alter(resource, "no.such", "1", OpType.SET));
        fails(InvalidConfigurationException.class, alter(resource, "segment.bytes", "-5", OpType.SET));
        ConfigResource unknown = new ConfigResource(ConfigResource.Type.TOPIC, "no-such-topic");
        fails(UnknownTopicOrPartitionException.class, alter(unknown, "retention.ms", "1", OpType.SET));
        fails(UnknownTopicOrPartitionException.class, ADMIN.describeConfigs(List.of(unknown)).all());
    }

    private static void documentation() throws Exception {
        ConfigResource topic = new ConfigResource(ConfigResource.Type.TOPIC, create(1, Map.of("retention.ms", "5")));
        DescribeConfigsOptions options = new DescribeConfigsOptions().includeDocumentation(true).includeSynonyms(true);
        Config found = ADMIN.describeConfigs(List.of(topic), options).all().get().get(topic);
        Checks.holds(found.entries().size() >= 30, found.entries().size());
        for (ConfigEntry entry : found.entries()) {
            Checks.holds(entry.documentation() != null && !entry.documentation().isEmpty(), entry.name());
            Checks.holds(entry.type() != ConfigEntry.ConfigType.UNKNOWN, entry.name());
        }
        ConfigEntry retention = found.get("retention.ms");
        Checks.same(ConfigEntry.ConfigType.LONG, retention.type());
        Checks.same("retention.ms", retention.synonyms().get(0).name());
        Checks.same(ConfigSource.DYNAMIC_TOPIC_CONFIG, retention.synonyms().get(0).source());
        Checks.same(1, retention.synonyms().size());
        Checks.same("log.cleaner.delete.retention.ms", found.get("delete.retention.ms").synonyms().get(0).name());
    }

    private static void brokerConfigs() throws Exception {
        ConfigResource one = new ConfigResource(ConfigResource.Type.BROKER, "1");
        ConfigResource all = new ConfigResource(ConfigResource.Type.BROKER, "");
        alter(all, "log.retention.ms", "123456789", OpType.SET).get();
        waitFor("123456789", all, "log.retention.ms", ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG);
        ConfigResource topic = new ConfigResource(ConfigResource.Type.TOPIC, create(1, Map.of()));
        waitFor("123456789", topic, "retention.ms", ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG);
        alter(one, "log.retention.ms", "23456789", OpType.SET).get();
        waitFor("23456789", one, "log.retention.ms", ConfigSource.DYNAMIC_BROKER_CONFIG);
        alter(one, "log.retention.ms", null, OpType.DELETE).get();
        alter(all, "log.retention.ms", null, OpType.DELETE).get();
        waitFor("604800000", topic, "retention.ms", ConfigSource.DEFAULT_CONFIG);
    }

    private static void waitFor(String value, ConfigResource resource, String key, ConfigSource source) throws Exception {
        long deadline = System.nanoTime() + 5_000_000_000L;
        ConfigEntry found = config(resource).get(key);
        while (found == null || !value.equals(found.value())) {
            Checks.holds(System.nanoTime() < deadline, key + " stays " + found);
            Thread.sleep(20);
            found = config(resource).get(key);
        }
        Checks.same(source, found.source());
    }

    private static void deleteRecords() throws Exception {
        String topic = create(1, Map.of());
        TopicPartition here = new TopicPartition(topic, 0);
        JavaClients.send(topic, 10, Map.of());
        Checks.same(6L, ADMIN.deleteRecords(Map.of(here, RecordsToDelete.beforeOffset(6)))
            .lowWatermarks().get(here).get().lowWatermark());
        Checks.same(6L, offset(here, OffsetSpec.earliest()));
    }

    private static long offset(TopicPartition here, OffsetSpec spec) throws Exception {
        return ADMIN.listOffsets(Map.of(here, spec)).partitionResult(here).get().offset();
    }

    private static void listOffsets() throws Exception {
        String topic = create(1, Map.of());
        TopicPartition here = new TopicPartition(topic, 0);
        Checks.same(-1L, offset(here, OffsetSpec.maxTimestamp()));
        JavaClients.send(topic, 10, Map.of());
        Checks.same(0L, offset(here, OffsetSpec.earliest()));
        Checks.same(10L, offset(here, OffsetSpec.latest()));
        Checks.same(0L, offset(here, OffsetSpec.earliestLocal()));
        Checks.same(-1L, offset(here, OffsetSpec.latestTiered()));
        Checks.same(0L, offset(here, OffsetSpec.forTimestamp(0)));
        Checks.same(-1L, offset(here, OffsetSpec.forTimestamp(System.currentTimeMillis() + 60_000)));
    }

    private static void cluster() throws Exception {
        Checks.same(22, ADMIN.describeCluster().clusterId().get().length());
        Checks.same(1, ADMIN.describeCluster().nodes().get().size());
        Checks.same(1, ADMIN.describeCluster().controller().get().id());
    }

    private static void logDirs() throws Exception {
        String topic = create(2, Map.of());
        JavaClients.send(topic, 10, Map.of());
        Map<String, LogDirDescription> found = ADMIN.describeLogDirs(List.of(1)).allDescriptions().get().get(1);
        Checks.same(Set.of(Checks.dataDirectory), found.keySet());
        LogDirDescription directory = found.get(Checks.dataDirectory);
        Checks.holds(directory.replicaInfos().get(new TopicPartition(topic, 0)).size() > 0, "a size of zero");
        Checks.same(0L, directory.replicaInfos().get(new TopicPartition(topic, 1)).size());
        Checks.holds(directory.totalBytes().getAsLong() > directory.usableBytes().getAsLong(), directory);
    }

    private static void features() throws Exception {
        FeatureMetadata features = ADMIN.describeFeatures().featureMetadata().get();
        Checks.holds(features.finalizedFeatures().containsKey("metadata.version"), features);
        Checks.same((short) 30, features.finalizedFeatures().get("metadata.version").maxVersionLevel());
    }
}
