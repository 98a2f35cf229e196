"""Broker configs of the controller quorum and of the node's identity."""

from ottla.metadata.configs.definition import parse_table

DEFINITIONS = parse_table("""
broker.heartbeat.interval.ms int 2000 any medium served read-only
    How often a broker sends a heartbeat to the controller.
broker.id int -1 any high served read-only
    The id of this node by its older name; node.id is the same.
broker.session.timeout.ms int 9000 any medium served read-only
    How long the controller waits for a heartbeat before it fences a broker.
controller.listener.names list required any high served read-only
    The listeners that controllers serve and connect to.
controller.performance.always.log.threshold.ms long 2000 >=0 medium irrelevant read-only internal
    A controller event slower than this is logged.
controller.performance.sample.period.ms long 60000 >=100 medium irrelevant read-only internal
    How often the controller reports the speed of its events.
controller.quorum.append.linger.ms int 25 >=0 medium irrelevant read-only
    How long the controller gathers records before it syncs them.
controller.quorum.auto.join.enable boolean false any low not-built read-only
    Lets a controller add itself to the voters.
controller.quorum.bootstrap.servers list "" any high served read-only
    Where to find the controllers, as host:port pairs.
controller.quorum.election.backoff.max.ms int 1000 >=0 high served read-only
    The longest wait before a new election after a tied one.
controller.quorum.election.timeout.ms int 1000 >=0 high served read-only
    How long a candidate waits for votes.
controller.quorum.fetch.max.bytes int 1048576 >=1 low served read-only
    Bytes of the metadata log that one fetch asks for.
controller.quorum.fetch.snapshot.max.bytes int 1048576 >=1 low served read-only
    Bytes of a snapshot that one request asks for.
controller.quorum.fetch.timeout.ms int 2000 >=0 high served read-only
    How long a voter waits for its leader before it calls an election.
controller.quorum.request.timeout.ms int 2000 >=0 medium served read-only
    How long a request between controllers may take.
controller.quorum.retry.backoff.ms int 20 >=0 low served read-only
    How long to wait before a failed request between controllers is sent again.
controller.quorum.voters list "" any high served read-only
    The fixed voters, as id@host:port pairs; unset where voters are dynamic.
initial.broker.registration.timeout.ms int 60000 any medium irrelevant read-only
    How long a starting broker waits to be registered.
internal.metadata.delete.delay.millis long 60000 any low irrelevant read-only internal
    How long deleted files of the metadata log stay on disk.
internal.metadata.log.segment.bytes int null any low irrelevant read-only internal
    A segment size for the metadata log below the usual minimum, for tests.
internal.metadata.max.batch.size.in.bytes int 8388608 any low irrelevant read-only internal
    The largest batch of the metadata log.
metadata.log.dir string null any high served read-only
    Where the metadata log is kept; if unset, in the first of the log directories.
metadata.log.max.record.bytes.between.snapshots long 20971520 >=1 high served read-only
    Bytes of metadata records after which a snapshot is written.
metadata.log.max.snapshot.interval.ms long 3600000 >=0 high served read-only
    The longest time between snapshots while records arrive; 0 is no limit.
metadata.log.segment.bytes int 1073741824 >=8388608 high served read-only
    The size at which a segment of the metadata log is closed.
metadata.log.segment.ms long 604800000 any high served read-only
    The age at which a segment of the metadata log is closed.
metadata.max.idle.interval.ms int 500 >=0 low irrelevant read-only
    How often an idle controller writes an empty record; 0 never.
metadata.max.retention.bytes long 104857600 any high served read-only
    Bytes of metadata log and snapshots kept behind the newest snapshot.
metadata.max.retention.ms long 604800000 any high served read-only
    How long metadata log and snapshots are kept behind the newest snapshot.
node.id int required >=0 high served read-only
    The id of this node, unique in its cluster.
process.roles list required {broker,controller} high served read-only
    What this process is: broker, controller, or both.
unstable.api.versions.enable boolean false any high irrelevant read-only internal
    Opens API versions that are still in the making.
unstable.feature.versions.enable boolean false any high irrelevant read-only internal
    Opens feature versions that are still in the making.
""")
