import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.atomic.AtomicReference;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.apache.kafka.clients.admin.ConsumerGroupDescription;
import org.apache.kafka.clients.admin.GroupListing;
import org.apache.kafka.clients.admin.ListGroupsOptions;
import org.apache.kafka.clients.admin.MemberToRemove;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.RemoveMembersFromConsumerGroupOptions;
import org.apache.kafka.clients.consumer.CommitFailedException;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.consumer.SubscriptionPattern;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.GroupState;
import org.apache.kafka.common.GroupType;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.FencedInstanceIdException;
import org.apache.kafka.common.errors.GroupIdNotFoundException;
import org.apache.kafka.common.errors.GroupNotEmptyException;
import org.apache.kafka.common.errors.InvalidRegularExpression;
import org.apache.kafka.common.errors.UnreleasedInstanceIdException;

/** The Java consumer as a member of groups, with both protocols, and groups in the admin client. */
final class JavaGroups {
    static final int PARTITIONS = 4;

    static void define() {
        for (String protocol : List.of("classic", "consumer")) {
            Checks.together("members share, and take over from who leaves, with protocol " + protocol,
                () -> sharing(protocol, Map.of()));
            Checks.together("a crashed member is replaced with protocol " + protocol, () -> crash(protocol));
            Checks.together("a static member comes back to its partitions with protocol " + protocol, () -> staticRestart(protocol));
            Checks.together("offsets are committed now, later and by itself with protocol " + protocol, () -> commits(protocol));
            Checks.together("who was thrown out cannot commit with protocol " + protocol, () -> thrownOut(protocol));
            Checks.together("new topics are found by a Java pattern with protocol " + protocol, () -> javaPattern(protocol));
            Checks.together("administrators see and change a group of protocol " + protocol, () -> administration(protocol));
        }
        for (String assignor : List.of("RoundRobin", "Sticky", "CooperativeSticky")) {
            String name = "org.apache.kafka.clients.consumer." + assignor + "Assignor";
            Checks.together("members share with assignor " + assignor,
                () -> sharing("classic", Map.of("partition.assignment.strategy", name)));
        }
        for (String assignor : List.of("uniform", "range")) {
            Checks.together("members share with the broker's assignor " + assignor,
                () -> sharing("consumer", Map.of("group.remote.assignor", assignor)));
        }
        Checks.together("cooperative members keep what they have", JavaGroups::cooperative);
        Checks.together("members of the new protocol keep what they have", JavaGroups::incremental);
        Checks.together("a broker finds topics by its own expression", JavaGroups::brokerPattern);
        Checks.together("static members are removed by an administrator", JavaGroups::removal);
        Checks.together("a group changes its protocol, and back, while it reads", JavaGroups::migration);
    }

    /** A topic of four partitions with ten records each. */
    static String filled() throws Exception {
        String topic = JavaAdmin.create(PARTITIONS, Map.of());
        send(topic, 10);
        return topic;
    }

    static void send(String topic, int each) {
        try (KafkaProducer<String, String> producer = JavaClients.producer(Map.of())) {
            for (int i = 0; i < each * PARTITIONS; i++) {
                producer.send(new ProducerRecord<>(topic, i % PARTITIONS, null, "v" + i));
            }
        }
    }

    static Map<TopicPartition, OffsetAndMetadata> at(String topic, int partition, long offset, String note) {
        return Map.of(new TopicPartition(topic, partition), new OffsetAndMetadata(offset, note));
    }

    private static void share(GroupMember first, GroupMember second) {
        GroupMember.until("two partitions each", () -> first.owned.size() == 2 && second.owned.size() == 2, first, second);
        Set<TopicPartition> all = new HashSet<>(first.owned);
        all.addAll(second.owned);
        Checks.same(PARTITIONS, all.size());
    }

    private static void sharing(String protocol, Map<String, String> config) throws Exception {
        String topic = filled();
        try (GroupMember first = GroupMember.of(protocol, topic, config)) {
            GroupMember.until("all records", () -> first.records.size() == 40, first);
            first.consumer.commitSync();
            try (GroupMember second = GroupMember.of(protocol, topic, config)) {
                share(first, second);
                send(topic, 1);
                GroupMember.until("new records", () -> first.records.size() >= 42 && second.records.size() >= 2, first, second);
                first.consumer.commitSync();
                second.consumer.commitSync();
            }
            GroupMember.until("all partitions again", () -> first.owned.size() == PARTITIONS, first);
            send(topic, 1);
            GroupMember.until("the rest", () -> first.records.size() >= 46, first);
            first.poll();
            Checks.same(46, first.records.size());  // What was committed does not come again.
        }
    }

    /** Static members do not say that they go: the group finds out when they stay away. */
    private static void crash(String protocol) throws Exception {
        String topic = filled();
        GroupMember first = GroupMember.of(protocol, topic, Map.of("group.instance.id", "a"));
        GroupMember second = GroupMember.of(protocol, topic, Map.of("group.instance.id", "b"));
        share(first, second);
        long startedAt = System.nanoTime();
        first.crash();
        GroupMember.until("the orphans", () -> second.owned.size() == PARTITIONS, second);
        Checks.holds(System.nanoTime() - startedAt > 3_000_000_000L, "it was given up too soon");
        second.close();
    }

    private static void staticRestart(String protocol) throws Exception {
        String topic = filled();
        Class<? extends Exception> expected =
            protocol.equals("classic") ? FencedInstanceIdException.class : UnreleasedInstanceIdException.class;
        try (GroupMember stays = GroupMember.of(protocol, topic, Map.of("group.instance.id", "a"))) {
            GroupMember goes = GroupMember.of(protocol, topic, Map.of("group.instance.id", "b"));
            share(stays, goes);
            Set<TopicPartition> kept = Set.copyOf(goes.owned);
            int assignments = stays.assignments;
            goes.close();
            GroupMember back = GroupMember.of(protocol, topic, Map.of("group.instance.id", "b"));
            GroupMember.until("its partitions", () -> back.owned.equals(kept), stays, back);
            Checks.same(assignments, stays.assignments);
            AtomicReference<Class<?>> thrown = new AtomicReference<>();
            GroupMember twin = GroupMember.of(protocol, topic, Map.of("group.instance.id", "b"));
            GroupMember.until("one of the twins is refused", () -> thrown.get() != null || refused(thrown, back, twin), stays);
            Checks.same(expected, thrown.get());
            back.crash();
            twin.crash();
        }
    }

    private static boolean refused(AtomicReference<Class<?>> thrown, GroupMember... twins) {
        try {
            for (GroupMember twin : twins) {
                twin.poll();
            }
        } catch (FencedInstanceIdException | UnreleasedInstanceIdException refusal) {
            thrown.set(refusal.getClass());
        } catch (AssertionError twoOwners) {
            return false;  // The twin was given them, and the other has not heard of it yet.
        }
        return thrown.get() != null;
    }

    private static void commits(String protocol) throws Exception {
        String topic = filled();
        TopicPartition here = new TopicPartition(topic, 0);
        try (GroupMember member = GroupMember.of(protocol, topic, Map.of())) {
            GroupMember.until("all records", () -> member.records.size() == 40, member);
            Checks.same(null, member.consumer.committed(Set.of(here)).get(here));
            member.consumer.commitSync(at(topic, 0, 3, "a note"));
            Checks.same("a note", member.consumer.committed(Set.of(here)).get(here).metadata());
            AtomicReference<Object> answered = new AtomicReference<>();
            member.consumer.commitAsync(at(topic, 0, 5, "é"), (offsets, failure) -> answered.set(failure == null ? offsets : failure));
            GroupMember.until("the answer", () -> answered.get() != null, member);
            Checks.same(at(topic, 0, 5, "é"), answered.get());
            Checks.same(5L, member.consumer.committed(Set.of(here)).get(here).offset());
            member.consumer.commitAsync();  // Answered at the latest when it is closed.
        }
        Map<String, String> automatic = Map.of("enable.auto.commit", "true", "auto.commit.interval.ms", "50");
        send(topic, 1);
        try (GroupMember member = GroupMember.of(protocol, topic, automatic)) {
            GroupMember.until("only what is new", () -> member.records.size() >= 4, member);
            Checks.same(Set.of(10L), member.records.stream().map(r -> r.offset()).collect(Collectors.toSet()));
            GroupMember.until("committed by itself",
                () -> member.consumer.committed(Set.of(here)).get(here).offset() == 11, member);
            Checks.same(0, member.consumer.committed(Set.of(here)).get(here).leaderEpoch().orElseThrow());
        }
    }

    private static void thrownOut(String protocol) throws Exception {
        String topic = filled();
        try (GroupMember other = GroupMember.of(protocol, topic, Map.of());
             GroupMember slow = GroupMember.of(protocol, topic, Map.of("max.poll.interval.ms", "1000"))) {
            share(other, slow);
            Set<TopicPartition> had = Set.copyOf(slow.owned);
            slow.abandon();  // Its handler takes too long, so its client leaves.
            GroupMember.until("the other has all", () -> other.owned.size() == PARTITIONS, other);
            try {
                slow.consumer.commitSync(at(topic, had.iterator().next().partition(), 1, ""));
                throw new AssertionError("the commit was taken");
            } catch (CommitFailedException expected) {
                Checks.same(0, slow.lost);
            }
            share(other, slow);
            Checks.same(2, slow.lost);
        }
    }

    private static void javaPattern(String protocol) throws Exception {
        String first = filled();
        Map<String, String> curious = Map.of("metadata.max.age.ms", "200");
        GroupMember made = new GroupMember(protocol, first + "-group", curious);
        try (GroupMember member = made.subscribed(Pattern.compile(Pattern.quote(first) + "(-too)?"))) {
            GroupMember.until("one topic", () -> member.owned.size() == PARTITIONS, member);
            JavaAdmin.ADMIN.createTopics(List.of(new NewTopic(first + "-too", 2, (short) 1))).all().get();
            GroupMember.until("two topics", () -> member.owned.size() == PARTITIONS + 2, member);
        }
    }

    private static void brokerPattern() throws Exception {
        String first = filled();
        Map<String, String> curious = Map.of("metadata.max.age.ms", "200");
        GroupMember made = new GroupMember("consumer", first + "-group", curious);
        try (GroupMember member = made.subscribed(new SubscriptionPattern(first + "(-too)?"))) {
            GroupMember.until("one topic", () -> member.owned.size() == PARTITIONS, member);
            JavaAdmin.ADMIN.createTopics(List.of(new NewTopic(first + "-too", 2, (short) 1))).all().get();
            GroupMember.until("two topics", () -> member.owned.size() == PARTITIONS + 2, member);
            member.subscribed(new SubscriptionPattern("nothing-is-called-so"));
            GroupMember.until("no topic", () -> member.owned.isEmpty(), member);
        }
        GroupMember bad = new GroupMember("consumer", first + "-bad", Map.of()).subscribed(new SubscriptionPattern("(a"));
        AtomicReference<Object> thrown = new AtomicReference<>();
        GroupMember.until("a refusal", () -> {
            try {
                bad.poll();
            } catch (InvalidRegularExpression refusal) {
                thrown.set(refusal);
            }
            return thrown.get() != null;
        });
        bad.close();
    }

    private static void cooperative() throws Exception {
        keeps("classic", Map.of("partition.assignment.strategy", "org.apache.kafka.clients.consumer.CooperativeStickyAssignor"));
    }

    private static void incremental() throws Exception {
        keeps("consumer", Map.of());
    }

    private static void keeps(String protocol, Map<String, String> config) throws Exception {
        String topic = filled();
        try (GroupMember first = GroupMember.of(protocol, topic, config)) {
            GroupMember.until("everything", () -> first.owned.size() == PARTITIONS, first);
            Set<TopicPartition> before = Set.copyOf(first.owned);
            try (GroupMember second = GroupMember.of(protocol, topic, config)) {
                share(first, second);
                Checks.same(2, first.revoked);  // What moves, and nothing else.
                Checks.holds(before.containsAll(first.owned), first.owned);
                Checks.same(0, second.revoked);
            }
            GroupMember.until("everything again", () -> first.owned.size() == PARTITIONS, first);
            Checks.same(2, first.revoked);
        }
    }

    private static void administration(String protocol) throws Exception {
        String topic = filled();
        String group = topic + "-group";
        Map<String, String> config = new HashMap<>(Map.of("client.rack", "r1"));
        try (GroupMember member = GroupMember.of(protocol, topic, config)) {
            GroupMember.until("all records", () -> member.records.size() == 40, member);
            member.consumer.commitSync();
            GroupType type = GroupType.parse(protocol);
            Checks.same(GroupState.STABLE, listed(group).groupState().orElseThrow());
            Checks.same(type, listed(group).type().orElseThrow());
            ConsumerGroupDescription told = described(group);
            Checks.same(type, told.type());
            Checks.same(GroupState.STABLE, told.groupState());
            Checks.same(1, told.coordinator().id());
            Checks.same(protocol.equals("classic") ? "range" : "uniform", told.partitionAssignor());
            Checks.same(member.owned, told.members().iterator().next().assignment().topicPartitions());
            Checks.same("member", told.members().iterator().next().clientId());
            JavaAdmin.fails(GroupNotEmptyException.class, JavaAdmin.ADMIN.deleteConsumerGroups(List.of(group)).all());
        }
        GroupMember.until("empty", () -> empty(group));
        TopicPartition here = new TopicPartition(topic, 1);
        JavaAdmin.ADMIN.alterConsumerGroupOffsets(group, at(topic, 1, 2, "moved")).all().get();
        Map<TopicPartition, OffsetAndMetadata> found =
            JavaAdmin.ADMIN.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata().get();
        Checks.same(PARTITIONS, found.size());
        Checks.same(2L, found.get(here).offset());
        Checks.same("moved", found.get(here).metadata());
        JavaAdmin.ADMIN.deleteConsumerGroupOffsets(group, Set.of(here)).all().get();
        found = JavaAdmin.ADMIN.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata().get();
        Checks.same(PARTITIONS - 1, found.size());
        JavaAdmin.ADMIN.deleteConsumerGroups(List.of(group)).all().get();
        JavaAdmin.fails(GroupIdNotFoundException.class, JavaAdmin.ADMIN.deleteConsumerGroups(List.of(group)).all());
        JavaAdmin.fails(GroupIdNotFoundException.class, JavaAdmin.ADMIN.describeConsumerGroups(List.of(group)).all());
    }

    private static void removal() throws Exception {
        String topic = filled();
        List<GroupMember> members = IntStream.range(0, 3)
            .mapToObj(i -> GroupMember.of("classic", topic, Map.of("group.instance.id", "m" + i, "session.timeout.ms", "30000")))
            .toList();
        GroupMember[] all = members.toArray(GroupMember[]::new);
        GroupMember.until("all in", () -> members.stream().mapToInt(one -> one.owned.size()).sum() == PARTITIONS
            && members.stream().noneMatch(one -> one.owned.isEmpty()), all);
        members.forEach(GroupMember::crash);
        String group = topic + "-group";
        Checks.same(3, described(group).members().size());
        JavaAdmin.ADMIN.removeMembersFromConsumerGroup(group,
            new RemoveMembersFromConsumerGroupOptions(List.of(new MemberToRemove("m1")))).all().get();
        Checks.same(2, described(group).members().size());
        JavaAdmin.ADMIN.removeMembersFromConsumerGroup(group, new RemoveMembersFromConsumerGroupOptions()).all().get();
        Checks.holds(empty(group), described(group));
    }

    /** Members of both protocols in one group: whoever is asked to give up a partition does so first. */
    private static void migration() throws Exception {
        String topic = filled();
        String group = topic + "-group";
        try (GroupMember classic = GroupMember.of("classic", topic, Map.of())) {
            GroupMember.until("all records", () -> classic.records.size() == 40, classic);
            classic.consumer.commitSync();
            try (GroupMember modern = GroupMember.of("consumer", topic, Map.of())) {
                share(classic, modern);
                Checks.same(GroupType.CONSUMER, described(group).type());
                send(topic, 1);
                GroupMember.until("two new records each",
                    () -> classic.records.size() >= 42 && modern.records.size() >= 2, classic, modern);
                classic.consumer.commitSync();
                modern.consumer.commitSync();
            }
            GroupMember.until("all partitions again", () -> classic.owned.size() == PARTITIONS, classic);
            Checks.same(GroupType.CLASSIC, described(group).type());
            send(topic, 1);
            GroupMember.until("the rest", () -> classic.records.size() >= 46, classic);
            classic.poll();
            Checks.same(46, classic.records.size());
        }
    }

    private static GroupListing listed(String group) throws Exception {
        return JavaAdmin.ADMIN.listGroups(ListGroupsOptions.forConsumerGroups()).all().get().stream()
            .filter(one -> one.groupId().equals(group)).findFirst().orElseThrow();
    }

    static ConsumerGroupDescription described(String group) throws Exception {
        return JavaAdmin.ADMIN.describeConsumerGroups(List.of(group)).all().get().get(group);
    }

    static boolean empty(String group) {
        try {
            return described(group).groupState() == GroupState.EMPTY;
        } catch (ExecutionException thrown) {
            throw new AssertionError(thrown.getCause());
        } catch (Exception thrown) {
            throw new AssertionError(thrown);
        }
    }
}
