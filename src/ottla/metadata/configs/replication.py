"""Broker configs of replicas and their leaders."""

from ottla.metadata.configs.definition import parse_table

DEFINITIONS = parse_table("""
alter.log.dirs.replication.quota.window.num int 11 >=1 low irrelevant read-only
    Samples kept to measure moves between log directories.
alter.log.dirs.replication.quota.window.size.seconds int 1 >=1 low irrelevant read-only
    Length of each sample that measures moves between log directories.
auto.leader.rebalance.enable boolean true any high served read-only
    Lets the controller give leadership back to preferred replicas.
broker.rack string null any medium served read-only
    The rack of this broker, for the placement of replicas.
controlled.shutdown.enable boolean true any medium irrelevant read-only
    Hands leadership over before the broker stops.
controller.socket.timeout.ms int 30000 any medium irrelevant read-only
    How long a request to the controller may take.
default.replication.factor int 1 any medium served read-only
    Replicas of a topic that is created without saying how many.
delete.records.purgatory.purge.interval.requests int 1 any medium irrelevant read-only
    How often finished waits of DeleteRecords are swept out.
fetch.purgatory.purge.interval.requests int 1000 any medium irrelevant read-only
    How often finished waits of Fetch are swept out.
follower.replication.throttled.rate long 9223372036854775807 >=0 medium served cluster-wide
    internal
    Bytes per second that this broker fetches of replicas whose fetching is throttled.
leader.imbalance.check.interval.seconds long 300 >=1 high served read-only
    How often the controller checks for unbalanced leadership.
leader.replication.throttled.rate long 9223372036854775807 >=0 medium served cluster-wide
    internal
    Bytes per second that this broker serves of replicas that are served throttled.
min.insync.replicas int 1 >=1 high served cluster-wide
    In-sync replicas that must hold a batch before acks=all is answered.
num.replica.alter.log.dirs.threads int null any high irrelevant read-only
    Threads that move replicas between log directories.
num.replica.fetchers int 1 >=1 high irrelevant cluster-wide
    Threads that fetch from each leader.
producer.purgatory.purge.interval.requests int 1000 any medium irrelevant read-only
    How often finished waits of Produce are swept out.
replica.fetch.backoff.ms int 1000 >=0 medium served read-only
    How long a follower waits after a failed fetch.
replica.fetch.max.bytes int 1048576 >=0 medium served read-only
    Bytes a follower asks for from each partition.
replica.fetch.min.bytes int 1 any high served read-only
    Bytes a leader gathers before it answers a follower.
replica.fetch.response.max.bytes int 10485760 >=0 medium served read-only
    Bytes a follower asks for in one answer.
replica.fetch.wait.max.ms int 500 any high served read-only
    How long a leader may hold a follower's fetch back.
replica.high.watermark.checkpoint.interval.ms long 5000 any high served read-only
    How often the high watermarks are written to disk.
replica.lag.time.max.ms long 30000 any high served read-only
    How far behind in time a follower may be and still count as in sync.
replica.selector.class string null any medium served read-only
    How a consumer's nearest replica is chosen.
replica.socket.receive.buffer.bytes int 65536 any high irrelevant read-only
    The receive buffer of a follower's socket.
replica.socket.timeout.ms int 30000 any high served read-only
    How long a follower's request may take.
replication.quota.window.num int 11 >=1 low served read-only
    Samples kept to measure replication.
replication.quota.window.size.seconds int 1 >=1 low served read-only
    Length of each sample that measures replication.
unclean.leader.election.enable boolean false any high served cluster-wide
    Lets a replica outside the ISR lead, at the price of lost records.
unclean.leader.election.interval.ms long 300000 >=1 medium served read-only internal
    How often the controller checks for partitions that need an unclean election.
""")
