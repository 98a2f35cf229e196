"""Broker configs of metrics and quotas."""

from ottla.metadata.configs.definition import parse_table

DEFINITIONS = parse_table("""
client.quota.callback.class class null any low not-built read-only
    A class that decides clients' quotas.
controller.quota.window.num int 11 >=1 low irrelevant read-only
    Samples kept to measure changes of topics by clients.
controller.quota.window.size.seconds int 1 >=1 low irrelevant read-only
    Length of each sample that measures changes of topics by clients.
kafka.metrics.polling.interval.secs int 10 >=1 low irrelevant read-only
    How often Kafka's own reporters poll.
kafka.metrics.reporters list "" any low irrelevant read-only
    Kafka's own reporters; metrics are at ottla.metrics.listener instead.
metric.reporters list org.apache.kafka.common.metrics.JmxReporter any low irrelevant cluster-wide
    Classes that report metrics; metrics are at ottla.metrics.listener instead.
metrics.num.samples int 2 >=1 low irrelevant read-only
    Samples kept for each metric.
metrics.recording.level string INFO any low irrelevant read-only
    How detailed the recorded metrics are.
metrics.sample.window.ms long 30000 >=1 low irrelevant read-only
    Length of each sample of a metric.
quota.window.num int 11 >=1 low irrelevant read-only
    Samples kept to measure clients.
quota.window.size.seconds int 1 >=1 low irrelevant read-only
    Length of each sample that measures clients.
telemetry.max.bytes int 1048576 >=1 low irrelevant read-only
    The largest metrics report a client may send.
""")
