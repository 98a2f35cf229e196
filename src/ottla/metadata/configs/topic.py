"""The configs of a topic."""

from ottla.metadata.configs.definition import parse_table

DEFINITIONS = parse_table("""
cleanup.policy list delete {compact,delete} medium served topic
    What happens to old segments: delete, compact, both, or (empty) neither.
compression.gzip.level int -1 -1|1..9 medium served topic
    The level used when the broker compresses with gzip; -1 is the codec's own default.
compression.lz4.level int 9 1..17 medium served topic
    The level used when the broker compresses with lz4.
compression.type string producer {uncompressed,zstd,lz4,snappy,gzip,producer} medium served topic
    The codec batches are stored with; producer keeps each producer's codec.
compression.zstd.level int 3 -131072..22 medium served topic
    The level used when the broker compresses with zstd.
delete.retention.ms long 86400000 >=0 medium served topic
    How long tombstones of a compacted topic stay readable.
file.delete.delay.ms long 60000 >=0 medium served topic
    How long a deleted segment's files stay on disk under another name.
flush.messages long 9223372036854775807 >=1 medium served topic
    Records a partition may take before it is synced to disk; 1 syncs before each reply.
flush.ms long 9223372036854775807 >=0 medium served topic
    How long a record may stay unsynced.
follower.replication.throttled.replicas list "" throttled medium served topic
    Replicas whose fetching is throttled, as partition:broker pairs, or * for all.
index.interval.bytes int 4096 >=0 medium served topic
    Bytes of batches between two entries of an offset index.
internal.segment.bytes int null any medium served topic internal
    A segment size below the usual minimum, for tests.
leader.replication.throttled.replicas list "" throttled medium served topic
    Replicas that are served throttled, as partition:broker pairs, or * for all.
local.retention.bytes long -2 >=-2 medium irrelevant topic
    Bytes kept on local disk of a tiered topic; -2 takes retention.bytes.
local.retention.ms long -2 >=-2 medium irrelevant topic
    How long a tiered topic stays on local disk; -2 takes retention.ms.
max.compaction.lag.ms long 9223372036854775807 >=1 medium served topic
    The longest time a record may stay out of reach of compaction.
max.message.bytes int 1048588 >=0 medium served topic
    The largest batch a producer may append, after compression.
message.timestamp.after.max.ms long 3600000 >=0 medium served topic
    How far a record's timestamp may be in the future.
message.timestamp.before.max.ms long 9223372036854775807 >=0 medium served topic
    How far a record's timestamp may be in the past.
message.timestamp.type string CreateTime {CreateTime,LogAppendTime} medium served topic
    Whether a record has the producer's time or the time of the append.
min.cleanable.dirty.ratio double 0.5 0..1 medium served topic
    The share of a log that must be uncleaned before it is compacted.
min.compaction.lag.ms long 0 >=0 medium served topic
    The shortest time a record is safe from compaction.
min.insync.replicas int 1 >=1 medium served topic
    In-sync replicas that must hold a batch before acks=all is answered.
preallocate boolean false any medium irrelevant topic
    Reserves a segment's whole size on disk when the segment is created.
remote.log.copy.disable boolean false any medium irrelevant topic
    Makes a tiered topic's remote log read-only.
remote.log.delete.on.disable boolean false any medium irrelevant topic
    Deletes the remote log when tiering is switched off.
remote.storage.enable boolean false any medium not-built topic
    Keeps old segments of the topic in remote storage.
retention.bytes long -1 any medium served topic
    The size a partition may reach before its oldest segments are deleted; -1 is no limit.
retention.ms long 604800000 >=-1 medium served topic
    Milliseconds a segment is kept after its newest record; -1 keeps it for ever.
segment.bytes int 1073741824 >=1048576 medium served topic
    The size at which a segment is closed and a new one begun.
segment.index.bytes int 10485760 >=4 medium served topic
    The size at which a full index makes its segment roll.
segment.jitter.ms long 0 >=0 medium served topic
    The most that is taken at random from the roll time, so that segments roll apart.
segment.ms long 604800000 >=1 medium served topic
    Milliseconds after which a segment is closed even if it is not full.
unclean.leader.election.enable boolean false any medium served topic
    Lets a replica outside the ISR lead, at the price of lost records.
""")
