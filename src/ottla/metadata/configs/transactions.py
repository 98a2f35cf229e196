"""Broker configs of producer ids and transactions."""

from ottla.metadata.configs.definition import parse_table

DEFINITIONS = parse_table("""
add.partitions.to.txn.retry.backoff.max.ms int 100 >=0 high irrelevant read-only
    How long adding a partition to a transaction is tried again.
add.partitions.to.txn.retry.backoff.ms int 20 >=1 high irrelevant read-only
    How long to wait before adding a partition is tried again.
producer.id.expiration.check.interval.ms int 600000 >=1 low served read-only internal
    How often forgotten producer ids are looked for.
producer.id.expiration.ms int 86400000 >=1 low served cluster-wide
    How long a partition remembers an idle producer's sequence numbers.
transaction.abort.timed.out.transaction.cleanup.interval.ms int 10000 >=1 low irrelevant read-only
    How often transactions past their timeout are looked for.
transaction.max.timeout.ms int 900000 >=1 high irrelevant read-only
    The longest timeout a producer may ask for its transactions.
transaction.partition.verification.enable boolean true any low irrelevant cluster-wide
    Checks that a partition belongs to a transaction before it is written.
transaction.remove.expired.transaction.cleanup.interval.ms int 3600000 >=1 low irrelevant read-only
    How often expired transactional ids are looked for.
transaction.state.log.load.buffer.size int 5242880 >=1 high irrelevant read-only
    Bytes read at once when transaction state is loaded.
transaction.state.log.min.isr int 2 >=1 high irrelevant read-only
    In-sync replicas that the transaction state topic needs.
transaction.state.log.num.partitions int 50 >=1 high irrelevant read-only
    Partitions of the transaction state topic.
transaction.state.log.replication.factor short 3 >=1 high irrelevant read-only
    Replicas of the transaction state topic.
transaction.state.log.segment.bytes int 104857600 >=1 high irrelevant read-only
    Segment size of the transaction state topic.
transaction.two.phase.commit.enable boolean false any low not-built read-only
    Lets producers take part in two-phase commits.
transactional.id.expiration.ms int 604800000 >=1 high irrelevant read-only
    How long an idle transactional id is remembered.
""")
