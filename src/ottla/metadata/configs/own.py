"""Broker configs of Ottla's own, which all start with `ottla.`."""

from ottla.metadata.configs.definition import parse_table

DEFINITIONS = parse_table("""
ottla.disk.reserve.bytes long 67108864 >=0 medium served read-only
    Free bytes of a log directory below which produce requests are refused until space returns.
ottla.log.format string text {text,json} low served read-only
    The form of a log line: text for people, json for machines.
ottla.log.level string info {debug,info,warning,error} low served read-only
    The least severe log lines that are written.
ottla.metrics.listener string "" any low served read-only
    The host:port that serves /metrics and /health over HTTP; empty serves neither.
ottla.record.decompressed.bytes.max long 67108864 >=1 medium served read-only
    The most bytes that a batch may unpack to; a larger one is refused.
ottla.record.validation string header {header,full} medium served read-only
    Whether each record of a batch is checked, or only its header, checksum and size.
""")
