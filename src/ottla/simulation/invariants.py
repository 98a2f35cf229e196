"""What must hold inside the broker at every moment, looked at while a run goes on."""

from ottla.model.types import Offset, TopicPartition
from ottla.simulation.history import Violation
from ottla.simulation.machine import Machine


class Invariants:
    def __init__(self, machine: Machine) -> None:
        self._machine = machine
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
