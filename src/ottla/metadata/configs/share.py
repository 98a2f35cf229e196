"""Broker configs of share groups.

Share groups are not served yet, and no API of theirs is advertised.
"""

from ottla.metadata.configs.definition import parse_table

DEFINITIONS = parse_table("""
group.share.assignment.interval.ms int 1000 >=0 medium irrelevant cluster-wide
    The shortest time between two assignments of a share group.
group.share.assignors list simple any medium irrelevant read-only
    The assignor of share groups.
group.share.delivery.count.limit int 5 2..10 medium irrelevant read-only
    How often a record is handed out before it is given up.
group.share.heartbeat.interval.ms int 5000 >=1 medium irrelevant read-only
    How often members of a share group send a heartbeat.
group.share.initialize.retry.interval.ms int 30000 >=1 low irrelevant read-only internal
    How long to wait before a share group's state is initialised again.
group.share.max.assignment.interval.ms int 15000 >=0 medium irrelevant read-only
    The largest assignment interval a share group may be given.
group.share.max.delivery.count.limit int 10 5..25 medium irrelevant read-only
    The largest delivery limit a share group may be given.
group.share.max.heartbeat.interval.ms int 15000 >=1 medium irrelevant read-only
    The largest heartbeat interval a share group may be given.
group.share.max.partition.max.record.locks int 4000 2000..10000 medium irrelevant read-only
    The largest number of locked records a share group may be given.
group.share.max.record.lock.duration.ms int 60000 30000..3600000 medium irrelevant read-only
    The longest record lock a share group may be given.
group.share.max.session.timeout.ms int 60000 >=1 medium irrelevant read-only
    The largest session timeout a share group may be given.
group.share.max.share.sessions int 2000 >=1 medium irrelevant read-only
    Share sessions the broker remembers.
group.share.max.size int 200 1..1000 medium irrelevant read-only
    Members a share group may have.
group.share.min.assignment.interval.ms int 0 >=0 medium irrelevant read-only
    The smallest assignment interval a share group may be given.
group.share.min.delivery.count.limit int 2 2..5 medium irrelevant read-only
    The smallest delivery limit a share group may be given.
group.share.min.heartbeat.interval.ms int 5000 >=1 medium irrelevant read-only
    The smallest heartbeat interval a share group may be given.
group.share.min.partition.max.record.locks int 100 100..2000 medium irrelevant read-only
    The smallest number of locked records a share group may be given.
group.share.min.record.lock.duration.ms int 15000 1000..30000 medium irrelevant read-only
    The shortest record lock a share group may be given.
group.share.min.session.timeout.ms int 45000 >=1 medium irrelevant read-only
    The smallest session timeout a share group may be given.
group.share.partition.max.record.locks int 2000 100..10000 medium irrelevant read-only
    Records of a partition that may be locked at a time.
group.share.persister.class.name string
    org.apache.kafka.server.share.persister.DefaultStatePersister any medium irrelevant read-only
    internal
    What stores the state of share groups.
group.share.record.lock.duration.ms int 30000 1000..3600000 medium irrelevant read-only
    How long a record stays locked for the member that took it.
group.share.session.timeout.ms int 45000 >=1 medium irrelevant read-only
    How long a share group waits for a member's heartbeat.
share.coordinator.append.linger.ms int -1 >=-1 medium irrelevant read-only
    How long the share coordinator gathers records; -1 adapts to the load.
share.coordinator.cached.buffer.max.bytes int 1048588 >=524288 medium irrelevant cluster-wide
    The largest write buffer the share coordinator keeps.
share.coordinator.cold.partition.snapshot.interval.ms int 300000 >=1 low irrelevant read-only
    internal
    How often idle share partitions are written as a snapshot.
share.coordinator.load.buffer.size int 5242880 >=1 high irrelevant read-only
    Bytes read at once when share state is loaded.
share.coordinator.snapshot.update.records.per.snapshot int 500 0..500 medium irrelevant read-only
    Updates between two snapshots of a share partition.
share.coordinator.state.topic.compression.codec int 0 any high irrelevant read-only
    The codec of the share state topic, by its number.
share.coordinator.state.topic.min.isr short 2 >=1 high irrelevant read-only
    In-sync replicas that the share state topic needs.
share.coordinator.state.topic.num.partitions int 50 >=1 high irrelevant read-only
    Partitions of the share state topic.
share.coordinator.state.topic.prune.interval.ms int 300000 >=1 low irrelevant read-only internal
    How often superseded share state is deleted.
share.coordinator.state.topic.replication.factor short 3 >=1 high irrelevant read-only
    Replicas of the share state topic.
share.coordinator.state.topic.segment.bytes int 104857600 >=1 high irrelevant read-only
    Segment size of the share state topic.
share.coordinator.threads int 1 >=1 medium irrelevant read-only
    Threads that run the share coordinator.
share.coordinator.write.timeout.ms int 5000 >=1 high irrelevant read-only
    How long a write of share state may wait for its replicas.
share.fetch.purgatory.purge.interval.requests int 1000 any medium irrelevant read-only
    How often finished waits of ShareFetch are swept out.
""")
