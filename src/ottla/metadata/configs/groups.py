"""Broker configs of consumer and streams groups and their committed offsets."""

from ottla.metadata.configs.definition import parse_table

DEFINITIONS = parse_table("""
group.consumer.assignment.interval.ms int 1000 >=0 medium served cluster-wide
    The shortest time between two assignments of a consumer group.
group.consumer.assignors list uniform,range {uniform,range} medium served read-only
    The assignors of consumer groups; the first is the default.
group.consumer.heartbeat.interval.ms int 5000 >=1 medium served read-only
    How often members of a consumer group send a heartbeat.
group.consumer.max.assignment.interval.ms int 15000 >=0 medium served read-only
    The largest assignment interval a consumer group may be given.
group.consumer.max.heartbeat.interval.ms int 15000 >=1 medium served read-only
    The largest heartbeat interval a consumer group may be given.
group.consumer.max.session.timeout.ms int 60000 >=1 medium served read-only
    The largest session timeout a consumer group may be given.
group.consumer.max.size int 2147483647 >=1 medium served read-only
    Members a consumer group may have.
group.consumer.migration.policy string bidirectional i{DISABLED,DOWNGRADE,UPGRADE,BIDIRECTIONAL}
    medium served read-only
    Which moves between classic and consumer groups are allowed while they are in use.
group.consumer.min.assignment.interval.ms int 0 >=0 medium served read-only
    The smallest assignment interval a consumer group may be given.
group.consumer.min.heartbeat.interval.ms int 5000 >=1 medium served read-only
    The smallest heartbeat interval a consumer group may be given.
group.consumer.min.session.timeout.ms int 45000 >=1 medium served read-only
    The smallest session timeout a consumer group may be given.
group.consumer.regex.refresh.interval.ms int 600000 >=10000 medium irrelevant read-only internal
    How often subscriptions by regular expression are looked up again.
group.consumer.session.timeout.ms int 45000 >=1 medium served read-only
    How long a consumer group waits for a member's heartbeat.
group.coordinator.append.linger.ms int -1 >=-1 medium irrelevant read-only
    How long the group coordinator gathers records; -1 adapts to the load.
group.coordinator.background.threads int 2 >=1 high irrelevant read-only
    Threads for the group coordinator's slow work.
group.coordinator.cached.buffer.max.bytes int 1048588 >=524288 medium irrelevant cluster-wide
    The largest write buffer the group coordinator keeps.
group.coordinator.rebalance.protocols list classic,consumer,streams {consumer,classic,share,streams}
    medium irrelevant read-only
    The group protocols that are open to clients.
group.coordinator.threads int 4 >=1 high irrelevant read-only
    Threads that run the group coordinator.
group.initial.rebalance.delay.ms int 3000 any medium served read-only
    How long a new classic group waits for more members.
group.max.session.timeout.ms int 1800000 any medium served read-only
    The largest session timeout a classic member may ask for.
group.max.size int 2147483647 >=1 medium served read-only
    Members a classic group may have.
group.min.session.timeout.ms int 6000 any medium served read-only
    The smallest session timeout a classic member may ask for.
group.streams.assignment.interval.ms int 1000 >=0 medium irrelevant cluster-wide
    The shortest time between two assignments of a streams group.
group.streams.heartbeat.interval.ms int 5000 >=1 medium irrelevant read-only
    How often members of a streams group send a heartbeat.
group.streams.initial.rebalance.delay.ms int 3000 >=0 medium irrelevant read-only
    How long a new streams group waits for more members.
group.streams.max.assignment.interval.ms int 15000 >=0 medium irrelevant read-only
    The largest assignment interval a streams group may be given.
group.streams.max.heartbeat.interval.ms int 15000 >=1 medium irrelevant read-only
    The largest heartbeat interval a streams group may be given.
group.streams.max.session.timeout.ms int 60000 >=1 medium irrelevant read-only
    The largest session timeout a streams group may be given.
group.streams.max.size int 2147483647 >=1 medium irrelevant read-only
    Members a streams group may have.
group.streams.max.standby.replicas int 2 >=0 medium irrelevant read-only
    The most standby replicas a streams group may be given.
group.streams.min.assignment.interval.ms int 0 >=0 medium irrelevant read-only
    The smallest assignment interval a streams group may be given.
group.streams.min.heartbeat.interval.ms int 5000 >=1 medium irrelevant read-only
    The smallest heartbeat interval a streams group may be given.
group.streams.min.session.timeout.ms int 45000 >=1 medium irrelevant read-only
    The smallest session timeout a streams group may be given.
group.streams.num.standby.replicas int 0 >=0 medium irrelevant read-only
    Standby replicas of each task of a streams group.
group.streams.session.timeout.ms int 45000 >=1 medium irrelevant read-only
    How long a streams group waits for a member's heartbeat.
offset.metadata.max.bytes int 4096 any high served read-only
    The longest note a client may attach to a committed offset.
offsets.commit.timeout.ms int 5000 >=1 high served read-only
    How long an answer of a group coordinator may wait for its replicas.
offsets.load.buffer.size int 5242880 >=1 high irrelevant read-only
    Bytes read at once when committed offsets are loaded.
offsets.retention.check.interval.ms long 600000 >=1 high served read-only
    How often expired offsets are looked for.
offsets.retention.minutes int 10080 >=1 high served read-only
    How long the offsets of an empty group are kept.
offsets.topic.compression.codec int 0 any high irrelevant read-only
    The codec of the offsets topic, by its number.
offsets.topic.num.partitions int 50 >=1 high served read-only
    Partitions of the offsets topic.
offsets.topic.replication.factor short 3 >=1 high served read-only
    Replicas of the offsets topic; unless it is set, one per broker if there are fewer than three.
offsets.topic.segment.bytes int 104857600 >=1 high served read-only
    Segment size of the offsets topic.
""")
