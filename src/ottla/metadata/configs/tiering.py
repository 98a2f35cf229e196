"""Broker configs of remote storage."""

from ottla.metadata.configs.definition import parse_table

DEFINITIONS = parse_table("""
follower.fetch.last.tiered.offset.enable boolean false any medium irrelevant cluster-wide
    Lets a new follower start where the remote log ends.
log.local.retention.bytes long -2 >=-2 medium irrelevant cluster-wide
    Bytes of a tiered partition kept on local disk; -2 takes the whole retention.
log.local.retention.ms long -2 >=-2 medium irrelevant cluster-wide
    How long a tiered partition stays on local disk; -2 takes the whole retention.
remote.fetch.max.wait.ms int 500 >=1 medium irrelevant cluster-wide
    How long a fetch may wait for remote storage.
remote.list.offsets.request.timeout.ms long 30000 >=1 medium irrelevant cluster-wide
    How long a ListOffsets may wait for remote storage.
remote.log.index.file.cache.total.size.bytes long 1073741824 >=1 low irrelevant cluster-wide
    Disk space for indexes fetched from remote storage.
remote.log.index.file.cache.ttl.ms long 900000 >=-1 low irrelevant read-only internal
    How long an index fetched from remote storage is kept.
remote.log.manager.copier.thread.pool.size int 10 >=1 medium irrelevant cluster-wide
    Threads that copy segments to remote storage.
remote.log.manager.copy.max.bytes.per.second long 9223372036854775807 >=1 medium irrelevant
    cluster-wide
    Bytes per second copied to remote storage.
remote.log.manager.copy.quota.window.num int 11 >=1 medium irrelevant read-only
    Samples kept to measure copies to remote storage.
remote.log.manager.copy.quota.window.size.seconds int 1 >=1 medium irrelevant read-only
    Length of each sample that measures copies to remote storage.
remote.log.manager.expiration.thread.pool.size int 10 >=1 medium irrelevant cluster-wide
    Threads that delete expired remote segments.
remote.log.manager.fetch.max.bytes.per.second long 9223372036854775807 >=1 medium irrelevant
    cluster-wide
    Bytes per second fetched from remote storage.
remote.log.manager.fetch.quota.window.num int 11 >=1 medium irrelevant read-only
    Samples kept to measure fetches from remote storage.
remote.log.manager.fetch.quota.window.size.seconds int 1 >=1 medium irrelevant read-only
    Length of each sample that measures fetches from remote storage.
remote.log.manager.follower.thread.pool.size int 2 >=1 medium irrelevant cluster-wide
    Threads that build a follower's state from remote storage.
remote.log.manager.task.interval.ms long 30000 >=1 low irrelevant read-only
    How often remote work is looked for.
remote.log.manager.task.retry.backoff.max.ms long 30000 >=1 low irrelevant read-only internal
    The longest wait between two tries of remote work.
remote.log.manager.task.retry.backoff.ms long 500 >=1 low irrelevant read-only internal
    The first wait between two tries of remote work.
remote.log.manager.task.retry.jitter double 0.2 0..0.5 low irrelevant read-only internal
    The share of random delay between two tries of remote work.
remote.log.manager.thread.pool.size int 2 >=1 medium irrelevant read-only
    Threads for remote work that has no pool of its own.
remote.log.metadata.custom.metadata.max.bytes int 128 >=0 low irrelevant read-only
    The largest note a remote store may attach to a segment.
remote.log.metadata.manager.class.name string
    org.apache.kafka.server.log.remote.metadata.storage.TopicBasedRemoteLogMetadataManager non-empty
    medium irrelevant read-only
    What keeps the metadata of remote segments.
remote.log.metadata.manager.class.path string null any medium not-built read-only
    Where the class that keeps remote metadata is found.
remote.log.metadata.manager.impl.prefix string rlmm.config. non-empty medium irrelevant read-only
    How settings of the remote metadata store begin.
remote.log.metadata.manager.listener.name string null non-empty medium not-built read-only
    The listener through which remote metadata is kept.
remote.log.reader.max.pending.tasks int 100 >=1 medium irrelevant read-only
    Remote reads that may wait for a thread.
remote.log.reader.threads int 10 >=1 medium irrelevant cluster-wide
    Threads that read from remote storage.
remote.log.storage.manager.class.name string null non-empty medium not-built read-only
    What stores remote segments.
remote.log.storage.manager.class.path string null any medium not-built read-only
    Where the class that stores remote segments is found.
remote.log.storage.manager.impl.prefix string rsm.config. non-empty medium irrelevant read-only
    How settings of the remote store begin.
remote.log.storage.system.enable boolean false any medium not-built read-only
    Lets topics keep their old segments in remote storage.
""")
