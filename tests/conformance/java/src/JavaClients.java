import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetOutOfRangeException;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.InvalidTopicException;
import org.apache.kafka.common.errors.RecordTooLargeException;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/** The Java producer and consumer, by partition and without a group. */
final class JavaClients {
    static void define() {
        for (String codec : List.of("none", "gzip", "snappy", "lz4", "zstd")) {
            Checks.check("records come back in order with codec " + codec, () -> roundTrip(Map.of("compression.type", codec)));
        }
        for (String acks : List.of("0", "1", "all")) {
            Checks.check("records come back in order with acks " + acks,
                () -> roundTrip(Map.of("acks", acks, "enable.idempotence", "false")));
        }
        Checks.check("an idempotent producer pipelines five requests", () -> roundTrip(Map.of("batch.size", "200", "linger.ms", "0")));
        Checks.check("keys, headers, timestamps and nulls survive", JavaClients::everyPartOfARecord);
        Checks.check("offsets are found by time and at the ends", JavaClients::offsetsByTime);
        Checks.check("a consumer seeks, pauses and resumes", JavaClients::seekAndPause);
        Checks.check("an offset out of range is thrown or reset", JavaClients::offsetOutOfRange);
        Checks.check("a topic is created by the first send", JavaClients::autoCreate);
        Checks.check("a record larger than the topic allows is refused", JavaClients::tooLarge);
        Checks.check("a bad topic name is refused", JavaClients::badName);
        Checks.check("many partitions are read through one fetch session", JavaClients::manyPartitions);
        Checks.check("a read-committed consumer reads plain records", JavaClients::readCommitted);
        Checks.check("small fetch limits still make progress", JavaClients::smallLimits);
    }

    static KafkaProducer<String, String> producer(Map<String, String> more) {
        Map<String, Object> config = new HashMap<>(Map.of("bootstrap.servers", Checks.bootstrap));
        config.putAll(more);
        return new KafkaProducer<>(config, new StringSerializer(), new StringSerializer());
    }

    static KafkaConsumer<String, String> consumer(Map<String, String> more) {
        Map<String, Object> config = new HashMap<>(Map.of(
            "bootstrap.servers", Checks.bootstrap, "auto.offset.reset", "earliest", "enable.auto.commit", "false"));
        config.putAll(more);
        return new KafkaConsumer<>(config, new StringDeserializer(), new StringDeserializer());
    }

    static List<ConsumerRecord<String, String>> take(KafkaConsumer<String, String> consumer, int count) {
        List<ConsumerRecord<String, String>> found = new ArrayList<>();
        long deadline = System.nanoTime() + 20_000_000_000L;
        while (found.size() < count) {
            Checks.holds(System.nanoTime() < deadline, found.size() + " of " + count + " records came");
            consumer.poll(Duration.ofMillis(200)).forEach(found::add);
        }
        return found;
    }

    static void send(String topic, int count, Map<String, String> config) throws Exception {
        try (KafkaProducer<String, String> producer = producer(config)) {
            List<Future<RecordMetadata>> answers = new ArrayList<>();
            for (int i = 0; i < count; i++) {
                answers.add(producer.send(new ProducerRecord<>(topic, 0, null, "v" + i)));
            }
            for (Future<RecordMetadata> answer : answers) {
                answer.get();
            }
        }
    }

    private static void roundTrip(Map<String, String> config) throws Exception {
        String topic = JavaAdmin.create(1, Map.of());
        send(topic, 300, config);
        try (KafkaConsumer<String, String> consumer = consumer(Map.of())) {
            consumer.assign(List.of(new TopicPartition(topic, 0)));
            List<ConsumerRecord<String, String>> found = take(consumer, 300);
            for (int i = 0; i < 300; i++) {
                Checks.same("v" + i, found.get(i).value());
                Checks.same((long) i, found.get(i).offset());
            }
        }
    }

    private static void everyPartOfARecord() throws Exception {
        String topic = JavaAdmin.create(1, Map.of());
        try (KafkaProducer<String, String> producer = producer(Map.of())) {
            producer.send(new ProducerRecord<>(topic, 0, 1_600_000_000_000L, "k", null,
                List.of(new RecordHeader("h", new byte[] {1}), new RecordHeader("null", (byte[]) null))));
            producer.send(new ProducerRecord<>(topic, 0, null, ""));
        }
        try (KafkaConsumer<String, String> consumer = consumer(Map.of())) {
            consumer.assign(List.of(new TopicPartition(topic, 0)));
            List<ConsumerRecord<String, String>> found = take(consumer, 2);
            Checks.same("k", found.get(0).key());
            Checks.same(null, found.get(0).value());
            Checks.same(1_600_000_000_000L, found.get(0).timestamp());
            Checks.same(2, found.get(0).headers().toArray().length);
            Checks.same(0, found.get(0).leaderEpoch().orElseThrow());
            Checks.same(null, found.get(1).key());
            Checks.same("", found.get(1).value());
        }
    }

    private static void offsetsByTime() throws Exception {
        String topic = JavaAdmin.create(1, Map.of());
        TopicPartition here = new TopicPartition(topic, 0);
        try (KafkaProducer<String, String> producer = producer(Map.of());
             KafkaConsumer<String, String> consumer = consumer(Map.of())) {
            for (int i = 0; i < 5; i++) {
                producer.send(new ProducerRecord<>(topic, 0, 1_600_000_000_000L + i * 10, null, "v")).get();
            }
            Checks.same(2L, consumer.offsetsForTimes(Map.of(here, 1_600_000_000_015L)).get(here).offset());
            Checks.same(null, consumer.offsetsForTimes(Map.of(here, 1_600_000_000_041L)).get(here));
            Checks.same(Map.of(here, 0L), consumer.beginningOffsets(List.of(here)));
            Checks.same(Map.of(here, 5L), consumer.endOffsets(List.of(here)));
            consumer.assign(List.of(here));
            consumer.seekToEnd(List.of(here));
            Checks.same(5L, consumer.position(here));
        }
    }

    private static void seekAndPause() throws Exception {
        String topic = JavaAdmin.create(1, Map.of());
        TopicPartition here = new TopicPartition(topic, 0);
        send(topic, 20, Map.of());
        try (KafkaConsumer<String, String> consumer = consumer(Map.of())) {
            consumer.assign(List.of(here));
            consumer.seek(here, 15);
            Checks.same("v15", take(consumer, 5).get(0).value());
            consumer.pause(List.of(here));
            consumer.seek(here, 3);
            Checks.same(0, consumer.poll(Duration.ofMillis(200)).count());
            consumer.resume(List.of(here));
            Checks.same("v3", take(consumer, 17).get(0).value());
            Checks.same(0L, consumer.currentLag(here).orElseThrow());
        }
    }

    private static void offsetOutOfRange() throws Exception {
        String topic = JavaAdmin.create(1, Map.of());
        TopicPartition here = new TopicPartition(topic, 0);
        send(topic, 3, Map.of());
        try (KafkaConsumer<String, String> consumer = consumer(Map.of())) {
            consumer.assign(List.of(here));
            consumer.seek(here, 1000);
            Checks.same("v0", take(consumer, 3).get(0).value());
        }
        try (KafkaConsumer<String, String> consumer = consumer(Map.of("auto.offset.reset", "none"))) {
            consumer.assign(List.of(here));
            consumer.seek(here, 1000);
            try {
                take(consumer, 1);
                throw new AssertionError("nothing was thrown");
            } catch (OffsetOutOfRangeException expected) {
                Checks.same(Map.of(here, 1000L), expected.offsetOutOfRangePartitions());
            }
        }
    }

    private static void autoCreate() throws Exception {
        String topic = Checks.newTopic();
        send(topic, 1, Map.of());
        try (KafkaConsumer<String, String> consumer = consumer(Map.of())) {
            Checks.same(1, consumer.partitionsFor(topic).size());
            Checks.holds(consumer.listTopics().containsKey(topic), "the topic is not listed");
        }
    }

    private static void tooLarge() throws Exception {
        String topic = JavaAdmin.create(1, Map.of("max.message.bytes", "1000"));
        try (KafkaProducer<String, String> producer = producer(Map.of())) {
            producer.send(new ProducerRecord<>(topic, 0, null, "x".repeat(2000))).get();
            throw new AssertionError("nothing was thrown");
        } catch (ExecutionException thrown) {
            Checks.same(RecordTooLargeException.class, thrown.getCause().getClass());
        }
    }

    private static void badName() throws Exception {
        try (KafkaProducer<String, String> producer = producer(Map.of("max.block.ms", "5000"))) {
            producer.send(new ProducerRecord<>("no good!", "x")).get();
            throw new AssertionError("nothing was thrown");
        } catch (ExecutionException thrown) {
            Checks.same(InvalidTopicException.class, thrown.getCause().getClass());
        }
    }

    private static void manyPartitions() throws Exception {
        String topic = JavaAdmin.create(40, Map.of());
        List<TopicPartition> all = new ArrayList<>();
        try (KafkaProducer<String, String> producer = producer(Map.of());
             KafkaConsumer<String, String> consumer = consumer(Map.of())) {
            for (int i = 0; i < 40; i++) {
                all.add(new TopicPartition(topic, i));
            }
            consumer.assign(all);
            for (int round = 0; round < 5; round++) {
                for (int i = round; i < 40; i += 7) {
                    producer.send(new ProducerRecord<>(topic, i, null, "v" + i));
                }
                producer.flush();
                for (ConsumerRecord<String, String> record : take(consumer, (40 - round + 6) / 7)) {
                    Checks.same("v" + record.partition(), record.value());
                }
            }
        }
    }

    private static void readCommitted() throws Exception {
        String topic = JavaAdmin.create(1, Map.of());
        send(topic, 10, Map.of());
        try (KafkaConsumer<String, String> consumer = consumer(Map.of("isolation.level", "read_committed"))) {
            consumer.assign(List.of(new TopicPartition(topic, 0)));
            Checks.same(10, take(consumer, 10).size());
        }
    }

    private static void smallLimits() throws Exception {
        String topic = JavaAdmin.create(1, Map.of());
        send(topic, 50, Map.of("batch.size", "100"));
        Map<String, String> limits = Map.of("fetch.max.bytes", "10", "max.partition.fetch.bytes", "10");
        try (KafkaConsumer<String, String> consumer = consumer(limits)) {
            consumer.assign(List.of(new TopicPartition(topic, 0)));
            Checks.same(50, take(consumer, 50).size());
        }
    }
}
