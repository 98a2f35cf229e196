"""DescribeLogDirs (api key 35), versions 1 to 5: the log directories, their space and their logs.

v3  a top-level error      v4  total and usable bytes      v5  whether a directory is cordoned
"""

from collections import defaultdict

from ottla.broker.handlers.context import PartitionContext
from ottla.broker.wire.apis import handles
from ottla.broker.wire.connection import Reply
from ottla.broker.wire.responses import send
from ottla.model.errors import ErrorCode
from ottla.model.types import TopicPartition
from ottla.protocol.messages import describe_log_dirs as wire
from ottla.storage.directory import LogDirectory


@handles(wire.Request)
def handle(request: wire.Request, reply: Reply, broker: PartitionContext) -> None:
    wanted = None
    if request.topics is not None:
        wanted = {TopicPartition(t.topic, index) for t in request.topics for index in t.partitions}
    results = [
        _describe(directory, wanted)
        for directory in broker.directories.all()
        if directory.path in broker.settings.log_dirs  # The metadata log may lie apart.
    ]
    results += [
        wire.DescribeLogDirsResult(ErrorCode.KAFKA_STORAGE_ERROR, path)
        for path in broker.directories.unopened()
    ]
    send(reply, wire.Response(results=results))


def _describe(
    directory: LogDirectory, wanted: set[TopicPartition] | None
) -> wire.DescribeLogDirsResult:
    result = wire.DescribeLogDirsResult(log_dir=directory.path)
    if directory.failure is not None:
        result.error_code = ErrorCode.KAFKA_STORAGE_ERROR
        return result
    topics: dict[str, list[wire.DescribeLogDirsPartition]] = defaultdict(list)
    for name, log in sorted(directory.logs.items()):
        if wanted is None or name in wanted:
            topics[name.topic].append(
                wire.DescribeLogDirsPartition(name.partition, log.size_bytes, 0, False)
            )
    result.topics = [wire.DescribeLogDirsTopic(*topic) for topic in topics.items()]
    try:
        result.total_bytes = directory.disk.total_bytes(directory.path)
        result.usable_bytes = directory.disk.free_bytes(directory.path)
    except OSError:
        result.error_code = ErrorCode.KAFKA_STORAGE_ERROR
    return result
