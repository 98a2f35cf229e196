"""What must hold inside the broker at every moment, looked at while a run goes on."""

from ottla.broker.partition import Partition
from ottla.model.types import Offset, TopicPartition
from ottla.simulation.history import History, Violation
from ottla.simulation.machine import Machine
from ottla.simulation.workload import TOPIC_PREFIX


class Invariants:
    def __init__(self, machine: Machine, history: History, retention_bytes: int | None) -> None:
        self._machine = machine
        self._history = history
        self._retention_bytes = retention_bytes
        self._start = 0  # The life of the broker that the marks below belong to.
        self._high_watermarks: dict[tuple[TopicPartition, bytes], Offset] = {}

    def check(self) -> None:
        broker = self._machine.broker
        if broker is None:
            return
        if self._start != self._machine.starts:
            self._start = self._machine.starts
            self._high_watermarks.clear()
        for partition in broker.partitions.all():
            log, high_watermark = partition.log, partition.high_watermark
            if not log.log_start_offset <= high_watermark <= log.end_offset <= log.staged_end:
                raise Violation(
                    f"{partition.name}: log start {log.log_start_offset}, high watermark "
                    f"{high_watermark}, end {log.end_offset}, staged {log.staged_end}"
                )
            key = (partition.name, partition.topic_id)
            if high_watermark < self._high_watermarks.get(key, 0):
                raise Violation(
                    f"{partition.name}: the high watermark went back to {high_watermark}"
                )
            self._high_watermarks[key] = high_watermark
            if partition.name.topic.startswith(TOPIC_PREFIX):
                self._check_start(partition)

    def _check_start(self, partition: Partition) -> None:
        """A log begins where it was asked to, or where the retention lets it."""
        trim, log = self._history.trims[partition.name], partition.log
        start = log.log_start_offset
        if start < trim.done:
            raise Violation(f"{partition.name}: deleted up to {trim.done}, and begins at {start}")
        if start <= trim.start_max:
            return
        if self._retention_bytes is None or log.size_bytes < self._retention_bytes:
            raise Violation(
                f"{partition.name}: begins at {start}, with {log.size_bytes} bytes left; deletion "
                f"was asked for up to {trim.asked}"
            )
        trim.retained = start
