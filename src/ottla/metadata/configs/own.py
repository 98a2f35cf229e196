"""Broker configs of Ottla's own, which all start with `ottla.`."""

from ottla.metadata.configs.definition import parse_table

DEFINITIONS = parse_table("""
ottla.disk.reserve.bytes long 67108864 >=0 medium served read-only
    Free bytes of a log directory below which produce requests are refused until space returns.
ottla.drained boolean false any low served per-broker
    Moves all replicas off this broker, and places no others on it.
ottla.log.format string text {text,json} low served read-only
    The form of a log line: text for people, json for machines.
ottla.log.level string info {debug,info,warning,error} low served read-only
    The least severe log lines that are written.
ottla.metrics.listener string "" any low served read-only
    The host:port that serves /metrics and /health over HTTP; empty serves neither.
ottla.rebalance.enable boolean true any medium served read-only
    Lets the controller move replicas when brokers are added, drained or lost for long.
ottla.rebalance.interval.ms long 10000 >=100 low served read-only
    How often the controller checks whether replicas should be moved.
ottla.rebalance.lost.after.ms long 900000 >=1000 medium served read-only
    How long a broker, or a disk of a replica, may be away before others take its replicas over.
ottla.rebalance.moves.max int 10 >=1 medium served read-only
    How many partitions the controller moves at the same time.
ottla.record.decompressed.bytes.max long 67108864 >=1 medium served read-only
    The most bytes that a batch may unpack to, a record being at least 64; more is refused.
ottla.record.validation string header {header,full} medium served read-only
    Whether each record of a batch is checked, or only its header, checksum and size.
""")
