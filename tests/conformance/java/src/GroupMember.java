import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.BooleanSupplier;
import java.util.regex.Pattern;
import org.apache.kafka.clients.consumer.CloseOptions;
import org.apache.kafka.clients.consumer.CloseOptions.GroupMembershipOperation;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.SubscriptionPattern;
import org.apache.kafka.common.TopicPartition;

/** A consumer of a group, with what it was given, what was taken from it, and what it read. */
final class GroupMember implements ConsumerRebalanceListener, AutoCloseable {
    private static final Duration A_MOMENT = Duration.ofMillis(20);
    /** Who owns a partition now, by group: nobody may be given what another has. */
    private static final Map<String, GroupMember> OWNERS = new ConcurrentHashMap<>();

    final KafkaConsumer<String, String> consumer;
    final String group;
    final Set<TopicPartition> owned = new HashSet<>();
    final List<ConsumerRecord<String, String>> records = new ArrayList<>();
    int assignments = 0;
    int revoked = 0;
    int lost = 0;

    GroupMember(String protocol, String group, Map<String, String> more) {
        this.group = group;
        Map<String, String> config = new HashMap<>(Map.of("group.id", group, "group.protocol", protocol, "client.id", "member"));
        if (protocol.equals("classic")) {
            config.putAll(Map.of("session.timeout.ms", "4000", "heartbeat.interval.ms", "100"));
        }
        config.putAll(more);
        consumer = JavaClients.consumer(config);
    }

    static GroupMember of(String protocol, String topic, Map<String, String> more) {
        GroupMember made = new GroupMember(protocol, topic + "-group", more);
        made.consumer.subscribe(List.of(topic), made);
        return made;
    }

    GroupMember subscribed(Pattern pattern) {
        consumer.subscribe(pattern, this);
        return this;
    }

    GroupMember subscribed(SubscriptionPattern pattern) {
        consumer.subscribe(pattern, this);
        return this;
    }

    @Override
    public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
        assignments++;
        for (TopicPartition one : partitions) {
            GroupMember before = OWNERS.put(group + one, this);
            Checks.holds(before == null || before == this, one + " has two owners");
        }
        owned.addAll(partitions);
    }

    @Override
    public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
        revoked += partitions.size();
        forget(partitions);
    }

    @Override
    public void onPartitionsLost(Collection<TopicPartition> partitions) {
        lost += partitions.size();
        forget(partitions);
    }

    /** Gone without a word, as a crashed process is: the group finds out by itself. */
    void crash() {
        abandon();
        CloseOptions silently = CloseOptions.groupMembershipOperation(GroupMembershipOperation.REMAIN_IN_GROUP);
        consumer.close(silently.withTimeout(Duration.ofSeconds(2)));
    }

    /** From here on others may have its partitions, whatever it believes. */
    void abandon() {
        owned.forEach(one -> OWNERS.remove(group + one, this));
    }

    void poll() {
        consumer.poll(A_MOMENT).forEach(records::add);
    }

    static void until(String what, BooleanSupplier condition, GroupMember... members) {
        long deadline = System.nanoTime() + 15_000_000_000L;
        while (!condition.getAsBoolean()) {
            Checks.holds(System.nanoTime() < deadline, "it did not come about: " + what);
            for (GroupMember member : members) {
                member.poll();
            }
        }
    }

    @Override
    public void close() {
        consumer.close();
    }

    private void forget(Collection<TopicPartition> partitions) {
        partitions.forEach(one -> OWNERS.remove(group + one, this));
        owned.removeAll(partitions);
    }
}
