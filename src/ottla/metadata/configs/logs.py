"""Broker configs of the logs: segments, retention, syncing, compaction, compression."""

from ottla.metadata.configs.definition import parse_table

DEFINITIONS = parse_table("""
auto.create.topics.enable boolean true any high served read-only
    Creates a topic when a client asks for one that does not exist.
compression.gzip.level int -1 -1|1..9 medium served cluster-wide
    The level used when the broker compresses with gzip; -1 is the codec's own default.
compression.lz4.level int 9 1..17 medium served cluster-wide
    The level used when the broker compresses with lz4.
compression.type string producer {uncompressed,zstd,lz4,snappy,gzip,producer} high served
    cluster-wide
    The codec batches are stored with; producer keeps each producer's codec.
compression.zstd.level int 3 -131072..22 medium served cluster-wide
    The level used when the broker compresses with zstd.
delete.topic.enable boolean true any high served read-only
    Allows topics to be deleted; otherwise a deletion is refused.
log.cleaner.backoff.ms long 15000 >=0 medium served cluster-wide
    How long a cleaner sleeps when no log needs compaction.
log.cleaner.dedupe.buffer.size long 134217728 any medium served cluster-wide
    Memory that all cleaners together use to remember keys.
log.cleaner.delete.retention.ms long 86400000 >=0 medium served cluster-wide
    How long tombstones of a compacted topic stay readable.
log.cleaner.enable boolean true any medium served read-only
    Runs the compaction of topics whose cleanup policy asks for it.
log.cleaner.io.buffer.load.factor double 0.9 any medium served cluster-wide
    How full a cleaner's key buffer may become.
log.cleaner.io.buffer.size int 524288 >=0 medium irrelevant cluster-wide
    Memory that all cleaners together use for reading and writing.
log.cleaner.io.max.bytes.per.second double 1.7976931348623157E308 any medium served cluster-wide
    An upper bound on the bytes cleaners read and write per second.
log.cleaner.max.compaction.lag.ms long 9223372036854775807 >=1 medium served cluster-wide
    The longest time a record may stay out of reach of compaction.
log.cleaner.min.cleanable.ratio double 0.5 0..1 medium served cluster-wide
    The share of a log that must be uncleaned before it is compacted.
log.cleaner.min.compaction.lag.ms long 0 >=0 medium served cluster-wide
    The shortest time a record is safe from compaction.
log.cleaner.threads int 1 >=0 medium irrelevant cluster-wide
    How many threads compact logs.
log.cleanup.policy list delete {compact,delete} medium served cluster-wide
    What happens to old segments: delete, compact, both, or (empty) neither.
log.dir list /tmp/kafka-logs any high served read-only
    Where logs are kept, when log.dirs is not set.
log.dir.failure.timeout.ms long 30000 >=1 low irrelevant read-only
    How long a broker tries to report a failed log directory before it stops.
log.dirs list null any high served read-only
    The directories logs are kept in; every partition lives in one of them.
log.flush.interval.messages long 9223372036854775807 >=1 high served cluster-wide
    Records a partition may take before it is synced to disk; 1 syncs before each reply.
log.flush.interval.ms long null any high served cluster-wide
    How long a record may stay unsynced; if unset, log.flush.scheduler.interval.ms counts.
log.flush.offset.checkpoint.interval.ms int 60000 >=0 high served read-only
    How often the recovery points are written to disk.
log.flush.scheduler.interval.ms long 9223372036854775807 any high served read-only
    How often logs are looked over for records that must be synced.
log.flush.start.offset.checkpoint.interval.ms int 60000 >=0 high served read-only
    How often the log start offsets are written to disk.
log.index.interval.bytes int 4096 >=0 medium served cluster-wide
    Bytes of batches between two entries of an offset index.
log.index.size.max.bytes int 10485760 >=4 medium served cluster-wide
    The size at which a full index makes its segment roll.
log.initial.task.delay.ms long 30000 >=0 low served read-only internal
    How long after start the periodic work on logs begins.
log.message.timestamp.after.max.ms long 3600000 >=0 medium served cluster-wide
    How far a record's timestamp may be in the future.
log.message.timestamp.before.max.ms long 9223372036854775807 >=0 medium served cluster-wide
    How far a record's timestamp may be in the past.
log.message.timestamp.type string CreateTime {CreateTime,LogAppendTime} medium served cluster-wide
    Whether a record has the producer's time or the time of the append.
log.preallocate boolean false any medium irrelevant cluster-wide
    Reserves a segment's whole size on disk when the segment is created.
log.retention.bytes long -1 any high served cluster-wide
    The size a partition may reach before its oldest segments are deleted; -1 is no limit.
log.retention.check.interval.ms long 300000 >=1 medium served read-only
    How often logs are looked over for segments to delete.
log.retention.hours int 168 any high served read-only
    Hours a segment is kept, when neither minutes nor milliseconds are set.
log.retention.minutes int null any high served read-only
    Minutes a segment is kept, when milliseconds are not set.
log.retention.ms long null any high served cluster-wide
    Milliseconds a segment is kept after its newest record; -1 keeps it for ever.
log.roll.hours int 168 >=1 high served read-only
    Hours after which a segment is closed, when log.roll.ms is not set.
log.roll.jitter.hours int 0 >=0 high served read-only
    Hours taken at random from the roll time, when log.roll.jitter.ms is not set.
log.roll.jitter.ms long null any high served cluster-wide
    The most that is taken at random from the roll time, so that segments roll apart.
log.roll.ms long null any high served cluster-wide
    Milliseconds after which a segment is closed even if it is not full.
log.segment.bytes int 1073741824 >=1048576 high served cluster-wide
    The size at which a segment is closed and a new one begun.
log.segment.delete.delay.ms long 60000 >=0 high served cluster-wide
    How long a deleted segment's files stay on disk under another name.
max.incremental.fetch.session.cache.slots int 1000 >=0 medium served read-only
    How many incremental fetch sessions the broker remembers.
max.request.partition.size.limit int 2000 >=1 medium served read-only
    The most partitions that one DescribeTopicPartitions answer lists.
message.max.bytes int 1048588 >=0 high served cluster-wide
    The largest batch a producer may append, after compression.
num.partitions int 1 >=1 medium served read-only
    Partitions of a topic that is created without saying how many.
num.recovery.threads.per.data.dir int 2 >=1 high irrelevant cluster-wide
    Threads per directory that open and recover logs at start.
cordoned.log.dirs list "" any medium not-built per-broker
    Directories that take no new partitions.
""")
